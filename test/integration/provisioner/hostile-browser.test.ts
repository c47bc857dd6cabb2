import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import { connectPage } from '#src/features/pages/cdp.ts';
import { ConnectionLost, type CdpEvent } from '#src/browsers/link/cdp.ts';
import { openCdp, TOO_LARGE } from '#src/browsers/chromium/cdp.ts';
import { cdpReady } from '#src/browsers/chromium/ready.ts';

/** A browser that a page has taken over: it may send anything to who speaks CDP with it. */

const never = () => new AbortController().signal;
/** 12 MB within the bound of a message: to parse it takes a core for five seconds and 300 MB. */
const VALUES = `[${'[],'.repeat(4 * 1024 ** 2)}0]`;

async function browserThat(serves: (socket: WebSocket) => void) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  server.on('connection', serves);
  await once(server, 'listening');
  onTestFinished(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port, path: '/' };
}

/** Errors that no listener takes end the process of the service. */
function untaken(): unknown[] {
  const errors: unknown[] = [];
  const note = (error: unknown) => void errors.push(error);
  process.prependListener('uncaughtException', note);
  onTestFinished(() => void process.off('uncaughtException', note));
  return errors;
}

test.each([
  ['no JSON', 'Nonsense'],
  ['null', 'null'],
  ['many values', VALUES],
  ['more than a message may have', 'x'.repeat(5 * 1024 ** 2)],
])('a launch whose browser sends %s fails, and nothing else does', async (what, text) => {
  const errors = untaken();
  const address = await browserThat((socket) => {
    socket.on('error', () => undefined);
    socket.on('message', () => {
      socket.send(text);
      socket.close();
    });
  });
  await expect(cdpReady(address, never())).rejects.toThrow();
  await new Promise(setImmediate);
  expect([what, errors]).toEqual([what, []]);
});

test('an answer of many values fails its command alone, an event of them is too large', async () => {
  const address = await browserThat((socket) =>
    socket.on('message', (data: Buffer) => {
      const { id, method } = JSON.parse(data.toString()) as { id: number; method: string };
      if (method === 'Hostile.answer') socket.send(`{"id":${id},"result":${VALUES}}`);
      else if (method === 'Hostile.event')
        socket.send(`{"method":"Evil.event","params":${VALUES},"sessionId":"S1"}`);
      else socket.send(JSON.stringify({ id, result: { data: '[],{}'.repeat(1024 ** 2) } }));
    }),
  );
  using cdp = await openCdp(address, never());
  const event = Promise.withResolvers<CdpEvent>();
  cdp.onEvent(event.resolve);
  const before = process.cpuUsage();
  await expect(cdp.send('Hostile.answer')).rejects.toThrow(/more than 200000 values/);
  cdp.send('Hostile.event').catch(() => undefined);
  expect(await event.promise).toMatchObject({ method: TOO_LARGE, sessionId: 'S1' });
  expect((await cdp.send<{ data: string }>('Page.picture')).data).toHaveLength(5 * 1024 ** 2);
  const { user } = process.cpuUsage(before);
  expect(user).toBeLessThan(4_000_000);
});

test('one call is given up where its browser answers with many values', async () => {
  const { host, port } = await browserThat((socket) =>
    socket.on('message', () => socket.send(`{"id":1,"result":${VALUES}}`)),
  );
  const options = { signal: never(), bytesMax: 32 * 1024 ** 2 };
  using cdp = await connectPage(`ws://${host}:${port}/`, options);
  await expect(cdp.send('Page.navigate')).rejects.toThrow(ConnectionLost);
});
