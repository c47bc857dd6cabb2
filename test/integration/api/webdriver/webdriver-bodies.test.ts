import { once } from 'node:events';
import { request as send, type ClientRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '#test/support/service/service.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** What bodies at /wd/hub may hold, and what they cost before they are read. */

const KEY = { authorization: 'Bearer any' };
const URL = `/wd/hub/session/ses_AAAAAAAAAAAAAAAAAAAAAA.${'0'.repeat(32)}/url`;
const NEW = '/wd/hub/session';

async function start(requestsPerMinute = 1_000_000) {
  const limits = { requestsPerMinute, concurrentSessions: 9, credits: 99_999, queueWeight: 1 };
  const app = await startApp(undefined, { limits });
  onTestFinished(() => app[Symbol.asyncDispose]());
  const at = await app.listen();
  /** A request whose body begins; without a length it is chunked. */
  function begin(path: string, headers: Record<string, string | number> = {}, beginning = '{') {
    const sent = send(at, { method: 'POST', path, headers: { ...KEY, ...headers } });
    sent.on('error', () => undefined);
    onTestFinished(() => void sent.destroy());
    sent.flushHeaders();
    sent.write(beginning);
    return sent;
  }
  return { app, begin };
}

async function answerTo(sent: ClientRequest) {
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const { value } = JSON.parse(await text(response)) as { value: Record<string, unknown> };
  return { status: response.statusCode, retry: response.headers['retry-after'], value };
}

const FULL = {
  status: 429,
  retry: '5',
  value: { error: 'unknown error', data: { error: 'TRANSFER_LIMIT_EXCEEDED' } },
};

test.each([[URL], [NEW]])(
  'bodies without a length have a share of the places, until they end: %s',
  async (path) => {
    const { begin } = await start();
    // Of three places an organization has one.
    const stalled = begin(path);
    await eventually(async () => {
      const second = begin(path);
      second.end('}');
      const answer = await answerTo(second);
      if (answer.status !== 429) return false;
      expect(answer).toMatchObject(FULL);
      return true;
    }, 'the refusal');
    // One whose length is small is not held, or needs no place.
    const small = begin(path, { 'content-length': 2 });
    small.end('}');
    expect((await answerTo(small)).status).not.toBe(429);
    stalled.destroy();
    await eventually(async () => {
      const next = begin(path);
      next.end('}');
      return (await answerTo(next)).status !== 429;
    }, 'a place');
  },
);

describe('a New Session without units left', () => {
  test('is refused before its body comes', async () => {
    const { begin } = await start(1);
    const first = begin(NEW, { 'content-length': 2 });
    first.end('}');
    expect(await answerTo(first)).toMatchObject({ status: 400 });
    const second = await answerTo(begin(NEW, { 'content-length': 2 }));
    expect(second).toMatchObject({ status: 429, value: { error: 'unknown error' } });
  });

  test('has paid as a create for a body in a coding', async () => {
    const { begin, app } = await start(20);
    const body = gzipSync('{"capabilities":7}');
    const headers = { 'content-length': body.length, 'content-encoding': 'gzip' };
    for (const status of [400, 400, 429]) {
      const sent = begin(NEW, headers, '');
      sent.end(body);
      expect((await answerTo(sent)).status).toBe(status);
    }
    expect((await app.request('GET', '/api/sessions')).status).toBe(429);
  });
});

test('a New Session pays for its create once', async () => {
  const { app } = await start(2);
  const begun = await app.request('POST', NEW, { capabilities: {} });
  expect(begun).toMatchObject({ status: 500, body: { value: { error: 'session not created' } } });
  expect((await app.request('GET', '/api/sessions')).status).toBe(200);
  expect((await app.request('GET', '/api/sessions')).status).toBe(429);
});

test('what is nested too deep to be written again is an invalid argument', async () => {
  const { begin } = await start();
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
  const sent = begin(
    NEW,
    {},
    `{"capabilities":{"alwaysMatch":{"bss:options":{"labels":${deep}}}}}`,
  );
  sent.end();
  expect(await answerTo(sent)).toMatchObject({ status: 400, value: { error: 'invalid argument' } });
});
