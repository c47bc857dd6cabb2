import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { lastOf } from '#test/support/stores/last-of.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** Screenshots over the API; the browsers are simulated. */

let app: Awaited<ReturnType<typeof startApp>>;
let apiUrl: string;
let id: string;
beforeAll(async () => {
  app = await startApp();
  apiUrl = await app.listen();
  id = (await app.request('POST', '/api/sessions', {})).body.id;
});
afterAll(() => app?.[Symbol.asyncDispose]());

const ask = (query = '', headers: Record<string, string> = {}, session = id) =>
  fetch(`${apiUrl}/api/sessions/${session}/screenshot${query}`, {
    headers: { authorization: 'Bearer any', ...headers },
  });
const errorOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: string };
  return `${response.status} ${error}`;
};

describe('a screenshot', () => {
  it('is a JPEG that a client keeps, asks for each time, and no proxy keeps', async () => {
    const response = await ask('?max_width=64');
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'image/jpeg',
      'cache-control': 'private, no-cache',
      'x-content-type-options': 'nosniff',
      etag: expect.stringMatching(/^"[\w-]{22}"$/),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.subarray(0, 3).toString('hex')).toBe('ffd8ff');
    expect(response.headers.get('content-length')).toBe(`${bytes.length}`);
  });

  test.each([
    ['the etag', (etag: string) => etag],
    ['the etag as a weak one', (etag: string) => `W/${etag}`],
    ['one of several', (etag: string) => `"other", ${etag}`],
    ['any', () => '*'],
  ])('that the client has is 304: If-None-Match is %s', async (_, headerOf) => {
    const etag = (await ask('?max_width=64')).headers.get('etag') ?? '';
    const response = await ask('?max_width=64', { 'if-none-match': headerOf(etag) });
    expect([response.status, await response.text()]).toEqual([304, '']);
    expect(response.headers.get('etag')).toBe(etag);
    const other = await ask('?max_width=64', { 'if-none-match': '"other", broken, ""' });
    expect(other.status).toBe(200);
  });

  test.each(['0', '63', '3841', '1.5', '-64', 'wide', '', '1e9', '64&max_width=65'])(
    'is refused with max_width=%s',
    async (width) => {
      expect(await errorOf(await ask(`?max_width=${width}`))).toBe('400 INVALID_REQUEST');
    },
  );

  it('is refused with an unknown parameter', async () => {
    expect(await errorOf(await ask('?width=100'))).toBe('400 INVALID_REQUEST');
  });

  test.each(['ses_none', 'ses_AAAAAAAAAAAAAAAAAAAAAA', '*', 'a.b'])(
    'of the unknown session %s is 404',
    async (session) => {
      expect(await errorOf(await ask('', {}, session))).toBe('404 SESSION_NOT_FOUND');
    },
  );

  it('is no use of the session, and leaves no event', async () => {
    const before = (await app.request('GET', `/api/sessions/${id}`)).body;
    const last = await lastOf(app.context.eventStore, ['evt.acme.>']);
    expect((await ask('?max_width=64')).status).toBe(200);
    expect(await lastOf(app.context.eventStore, ['evt.acme.>'])).toBe(last);
    expect((await app.request('GET', `/api/sessions/${id}`)).body).toEqual(before);
  });

  it('costs one unit as a thumbnail, and two in full size', async () => {
    // A minute of the rate limit begins: none ends between the requests.
    app.pass(60_000 - (app.context.now() % 60_000));
    const left = async (query: string) =>
      Number((await ask(query, { 'if-none-match': '*' })).headers.get('x-ratelimit-remaining'));
    const first = await left('?max_width=64');
    expect(await left('?max_width=640')).toBe(first - 1);
    expect(await left('?max_width=641')).toBe(first - 3);
    expect(await left('')).toBe(first - 5);
  });
});

test('of a session that has ended there is none, also within a second of the last one', async () => {
  const { id: ended } = (await app.request('POST', '/api/sessions', {})).body;
  expect((await ask('', {}, ended)).status).toBe(200);
  expect((await app.request('DELETE', `/api/sessions/${ended}`)).status).toBe(200);
  expect(await errorOf(await ask('', {}, ended))).toBe('410 SESSION_ENDED');
});

test('of a session that waits for its browser there is none yet', async () => {
  await using full = await startApp();
  const url = await full.listen();
  const prefer = { prefer: 'respond-async' };
  const ids: string[] = [];
  // The server has room for 20.
  while (ids.length < 21)
    ids.push((await full.request('POST', '/api/sessions', {}, prefer)).body.id);
  const response = await fetch(`${url}/api/sessions/${ids.at(-1)}/screenshot`, {
    headers: { authorization: 'Bearer any' },
  });
  expect(response.headers.get('retry-after')).toBe('1');
  expect(await errorOf(response)).toBe('409 SESSION_NOT_READY');
});

test('of a session whose server does not answer there is none for now', async () => {
  await using other = await startApp();
  const url = await other.listen();
  const { id: session } = (await other.request('POST', '/api/sessions', {})).body;
  const look = () =>
    fetch(`${url}/api/sessions/${session}/screenshot`, {
      headers: { authorization: 'Bearer any' },
    });
  other.stopServing();
  const gone = await look();
  expect(gone.headers.get('retry-after')).toBe('5');
  expect(await gone.json()).toMatchObject({
    error: 'UNAVAILABLE',
    message: 'The session’s server does not answer; try again.',
    context: { part: 'browser-server' },
  });
});
