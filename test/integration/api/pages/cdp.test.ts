import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, test } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import { CdpRefusal, ConnectionLost } from '#src/browsers/link/cdp.ts';
import { connectPage } from '#src/features/pages/cdp.ts';
import type { PageEvent } from '#src/features/pages/page-events.ts';

/** The connection of one-call requests to a browser that says anything. */

const cleanup: (() => void)[] = [];
afterEach(() => {
  for (const end of cleanup.splice(0)) end();
});

/** A browser that answers each command with what `answer` makes of its id. */
async function connect(answer: (id: number, socket: WebSocket) => void, bytesMax = 400_000) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  server.on('connection', (socket) =>
    socket.on('message', (data: Buffer) => {
      const { id } = JSON.parse(data.toString()) as { id: number };
      answer(id, socket);
    }),
  );
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ending = new AbortController();
  const cdp = await connectPage(url, { signal: ending.signal, bytesMax });
  cleanup.push(() => {
    cdp[Symbol.dispose]();
    server.close();
  });
  const events: PageEvent[] = [];
  cdp.onEvent((event) => events.push(event));
  return { cdp, events, ending };
}

const failureOf = (work: Promise<unknown>) => work.catch((error: unknown) => error);

it('resolves with the answer to each command, and rejects with the browser’s refusal', async () => {
  const { cdp } = await connect((id, socket) =>
    socket.send(
      JSON.stringify(id === 1 ? { id, result: { a: 1 } } : { id, error: { message: 'No.' } }),
    ),
  );
  expect(await cdp.send('A.b')).toEqual({ a: 1 });
  expect(await failureOf(cdp.send('A.c'))).toEqual(new CdpRefusal('No.'));
});

it('passes on the events that are used, and reads no others', async () => {
  const { cdp, events } = await connect((id, socket) => {
    socket.send('{"method":"Network.dataReceived","params":{ this is no JSON');
    socket.send(
      `{"method":"Page.javascriptDialogOpening","params":{"message":"${'x'.repeat(5_000)}`,
    );
    socket.send('{"method":"Inspector.targetCrashed","params":{},"sessionId":"S.1"}');
    const long = 'x'.repeat(5_000);
    const target = { targetId: 'T', type: 'page', title: '', url: `data:,${long}` };
    const attached = { sessionId: 'S.2', targetInfo: target, waitingForDebugger: true };
    socket.send(JSON.stringify({ method: 'Target.attachedToTarget', params: attached }));
    const request = { url: `http://a/${long}`, postData: '"responseStatusCode":' };
    const paused = { requestId: 'interception-job-1.0', request, frameId: 'F' };
    socket.send(JSON.stringify({ method: 'Fetch.requestPaused', params: paused }));
    const responseHeaders = [{ name: 'Content-Type', value: 'text/plain' }];
    const answered = { ...paused, responseStatusCode: 204, responseHeaders };
    socket.send(JSON.stringify({ method: 'Fetch.requestPaused', params: answered }));
    const tooLong = { ...answered, request: { url: 'x'.repeat(200_000) } };
    socket.send(JSON.stringify({ method: 'Fetch.requestPaused', params: tooLong }));
    socket.send(JSON.stringify({ method: 'Fetch.authRequired', params: paused }));
    const saved = { frameId: 'F', guid: 'G', url: 'http://a/', suggestedFilename: 'a.zip' };
    socket.send(JSON.stringify({ method: 'Page.downloadWillBegin', params: saved }));
    const params = { frameId: 'F', loaderId: 'L', name: 'load', timestamp: 1 };
    socket.send(JSON.stringify({ method: 'Page.lifecycleEvent', params }));
    socket.send(JSON.stringify({ method: 'Page.frameDetached', params: { frameId: 'F' } }));
    socket.send(JSON.stringify({ id, result: {} }));
  });
  await cdp.send('A.b');
  const sessionId = null;
  const requestId = 'interception-job-1.0';
  const url = `http://a/${'x'.repeat(5_000)}`;
  const headers = new Map([['content-type', 'text/plain']]);
  const response = { frameId: 'F', url, status: 204, headers };
  expect(events).toEqual([
    { method: 'Page.javascriptDialogOpening', sessionId },
    { method: 'Inspector.targetCrashed', sessionId: 'S.1' },
    { method: 'Target.attachedToTarget', sessionId, attachedSessionId: 'S.2' },
    { method: 'Fetch.requestPaused', sessionId, requestId, response: null },
    { method: 'Fetch.requestPaused', sessionId, requestId, response },
    { method: 'Fetch.requestPaused', sessionId, requestId, response: null },
    { method: 'Fetch.authRequired', sessionId, requestId },
    { method: 'Page.downloadWillBegin', sessionId, frameId: 'F', fileName: 'a.zip' },
    { method: 'Page.lifecycleEvent', sessionId, frameId: 'F', loaderId: 'L', name: 'load' },
    { method: 'Page.frameDetached', sessionId, frameId: 'F' },
  ]);
});

it('passes on the request of a page that sends more than the connection takes', async () => {
  const { cdp, events } = await connect((id, socket) => {
    for (const length of [131_000, 500_000, 2_000_000]) {
      const request = { url: 'http://a/', postData: '\u0416'.repeat(length) };
      const params = { requestId: `interception-job-${length}.0`, request, frameId: 'F' };
      const paused = { method: 'Fetch.requestPaused', params, sessionId: 'S.1' };
      socket.send(JSON.stringify(paused));
    }
    socket.send(JSON.stringify({ id, result: { data: 'x'.repeat(300_000) } }));
  });
  expect((await cdp.send('A.b'))['data']).toHaveLength(300_000);
  expect(events).toEqual(
    [131_000, 500_000, 2_000_000].map((length) => ({
      method: 'Fetch.requestPaused',
      sessionId: 'S.1',
      requestId: `interception-job-${length}.0`,
      response: null,
    })),
  );
});

describe('the connection ends', () => {
  test.each([
    ['no JSON', '{"id":1,'],
    ['an answer without a result', '{"id":1}'],
    ['a result that is no object', '{"id":1,"result":[]}'],
    ['an event without its fields', '{"method":"Page.lifecycleEvent","params":{"frameId":1}}'],
    ['an event with no params', '{"method":"Page.frameDetached","params":null}'],
    [
      'an event that is too long',
      `{"method":"Page.frameDetached","params":{"x":"${'y'.repeat(5_000)}"}}`,
    ],
    ['bytes', Buffer.from('{"id":1,"result":{}}')],
  ])('at %s', async (_, message) => {
    const { cdp } = await connect((_id, socket) => socket.send(message));
    const failure = await failureOf(cdp.send('A.b'));
    expect(failure).toBeInstanceOf(ConnectionLost);
    expect(failure).toMatchObject({ isTooLong: false });
    expect(await failureOf(cdp.send('A.c'))).toBe(failure);
  });

  it('at a message that is longer than it takes, and says so', async () => {
    const { cdp } = await connect((id, socket) =>
      socket.send(JSON.stringify({ id, result: { data: 'x'.repeat(400_000) } })),
    );
    expect(await failureOf(cdp.send('A.b'))).toMatchObject({ isTooLong: true });
  });

  it('and all that wait for an event know', async () => {
    const { cdp } = await connect((_id, socket) => socket.close());
    await failureOf(cdp.send('A.b'));
    expect(await failureOf(cdp.closed)).toBeInstanceOf(ConnectionLost);
  });

  it('where the browser leaves thousands of commands without an answer', async () => {
    const { cdp } = await connect(() => undefined);
    const sent = Array.from({ length: 4_097 }, () => failureOf(cdp.send('A.b')));
    for (const failure of await Promise.all(sent)) expect(failure).toBeInstanceOf(ConnectionLost);
  });

  it('with the reason of its signal', async () => {
    const { cdp, ending } = await connect(() => ending.abort(new Error('late')));
    expect(await failureOf(cdp.send('A.b'))).toEqual(new Error('late'));
  });
});

it('cannot be made where nothing listens, or after the signal', async () => {
  const options = { signal: new AbortController().signal, bytesMax: 1 };
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.close();
  await once(server, 'close');
  expect(await failureOf(connectPage(url, options))).toBeInstanceOf(ConnectionLost);
  const signal = AbortSignal.abort(new Error('late'));
  expect(await failureOf(connectPage(url, { ...options, signal }))).toEqual(new Error('late'));
});
