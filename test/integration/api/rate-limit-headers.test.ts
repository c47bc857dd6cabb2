import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** Every answer tells what is left of the budget that its request was counted in. */

const LIMIT = 100;
const limits = {
  requestsPerMinute: LIMIT,
  concurrentSessions: 100,
  credits: 10_000,
  queueWeight: 1,
};
const MINUTE_MS = 60_000;
const credential = { authorization: 'Bearer any' };

let app: Awaited<ReturnType<typeof startApp>>;
let address: string;
beforeAll(async () => {
  app = await startApp(undefined, { limits });
  address = await app.listen();
});
afterAll(() => app?.[Symbol.asyncDispose]());
// A new window, in which nothing is taken, with all of its minute: none ends within a test.
beforeEach(() => app.pass(MINUTE_MS - (app.now() % MINUTE_MS)));

/** The answer's status and what it says of the budget, and its body. */
async function answer(path: string, init: RequestInit = {}) {
  const reply = await fetch(address + path, init);
  const read = (name: string) => Number(reply.headers.get(`x-ratelimit-${name}`) ?? 'none');
  expect(read('limit')).toBe(LIMIT);
  const inMs = read('reset') * 1_000 - app.now();
  expect([inMs > -1_000, inMs <= MINUTE_MS]).toEqual([true, true]);
  const isStream = reply.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (isStream) void reply.body?.cancel();
  const body = isStream ? '' : await reply.text();
  return { status: reply.status, taken: LIMIT - read('remaining'), body, headers: reply.headers };
}

/** The same for bytes that no client would send. */
async function answerTo(bytes: string) {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  socket.end(bytes);
  const said = await text(socket);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(said)?.[1]);
  const remaining = Number(/x-ratelimit-remaining: (\d+)/i.exec(said)?.[1]);
  expect(said).toMatch(
    /x-ratelimit-limit: 100\r\nx-ratelimit-remaining: \d+\r\nx-ratelimit-reset: \d+/,
  );
  return { status, taken: LIMIT - remaining };
}

const json = { ...credential, 'content-type': 'application/json' };
const gone = '/api/sessions/ses_AAAAAAAAAAAAAAAAAAAAAA';

describe('an organization’s request', () => {
  it.each<[status: number, taken: number, path: string, init?: RequestInit]>([
    [200, 1, '/api/sessions'],
    [200, 10, '/api/sessions?label=a%3Db&label=c%3Dd'],
    [200, 20, '/api/sessions?as_of=2026-01-01T00:00:00Z'],
    [200, 20, '/api/status?as_of=2026-01-01T00:00:00Z'],
    [404, 10, `${gone}?as_of=2026-01-01T00:00:00Z`],
    [200, 11, '/api/usage?limit=100'],
    [200, 1, '/api/events'],
    [200, 10, '/api/events?from=1'],
    [404, 10, `${gone}/events`],
    [404, 2, `${gone}/events?from=71204`],
    [405, 1, '/api/sessions', { method: 'OPTIONS' }],
    [404, 1, gone],
    [404, 1, '/api/nothing'],
    [405, 1, '/api/sessions', { method: 'PUT' }],
    [400, 1, '/api/sessions?limit=0'],
    [400, 1, '/api/sessions', { method: 'POST', headers: json, body: '{' }],
    [413, 10, '/api/sessions', { method: 'POST', headers: json, body: 'x'.repeat(70_000) }],
    [
      415,
      1,
      '/api/sessions',
      { method: 'POST', headers: { ...credential, 'content-type': 'a/b' }, body: 'x' },
    ],
  ])('that is answered %i takes %i: %s', async (status, taken, path, init = {}) => {
    const got = await answer(path, { headers: credential, ...init });
    expect([got.status, got.taken]).toEqual([status, taken]);
  });

  it('that costs more than is left is refused, with its cost, and takes nothing', async () => {
    for (let taken = 20; taken <= 80; taken += 20)
      expect(
        (await answer('/api/status?as_of=2026-01-01T00:00:00Z', { headers: credential })).taken,
      ).toBe(taken);
    await answer('/api/status', { headers: credential });
    const refused = await answer('/api/status?as_of=2026-01-01T00:00:00Z', { headers: credential });
    expect([refused.status, refused.taken]).toEqual([429, 81]);
    expect(JSON.parse(refused.body)).toMatchObject({
      error: 'RATE_LIMIT_EXCEEDED',
      context: { limit: LIMIT, cost: 20 },
    });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await answer('/api/status', { headers: credential })).taken).toBe(82);
  });
});

describe('a request without a credential is counted by address', () => {
  it.each<[status: number, taken: number, path: string]>([
    [401, 1, '/api/sessions'],
    [404, 1, '/api/nothing'],
    [200, 0, '/api/health'],
    [200, 0, '/api/ready'],
    [200, 0, '/metrics'],
    [200, 1, '/api/openapi.json'],
    [200, 1, '/docs'],
  ])('%i takes %i: %s', async (status, taken, path) => {
    const got = await answer(path);
    expect([got.status, got.taken]).toEqual([status, taken]);
  });

  test.each([
    ['bytes that are not HTTP', 'HELLO\r\n\r\n'],
    ['a missing Host', 'GET /api/health HTTP/1.1\r\nconnection: close\r\n\r\n'],
    ['a path that is not text', 'GET /%ff HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'],
    ['too many headers', `GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(90_000)}\r\n\r\n`],
    ['a tunnel', 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    expect(await answerTo(bytes)).toEqual({ status: 400, taken: 1 });
  });

  it('and refused a document beyond the limit, but never health, readiness and metrics', async () => {
    const etag = (await answer('/api/openapi.json')).headers.get('etag') ?? '';
    for (let taken = 2; taken <= LIMIT; taken += 1) {
      const headers = { 'if-none-match': etag };
      const got = await answer('/api/openapi.json', { headers });
      expect([got.status, got.taken]).toEqual([304, taken]);
    }
    for (const path of [
      '/api/sessions',
      '/api/nothing',
      '/docs',
      '/docs/events',
      '/docs/scalar.js',
      '/licenses',
      '/api/openapi.json',
      '/api/asyncapi.json',
    ]) {
      const { status, body } = await answer(path);
      expect([path, status, JSON.parse(body).error]).toEqual([path, 429, 'RATE_LIMIT_EXCEEDED']);
    }
    for (const path of ['/api/health', '/api/ready', '/metrics'])
      expect((await answer(path)).status).toBe(200);
    // An organization has its own budget, whatever the address.
    expect((await answer('/api/sessions', { headers: credential })).status).toBe(200);
  });
});
