import { once } from 'node:events';
import { request as send, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** What W3C WebDriver says of HTTP holds at /wd/hub, whatever the rules of the REST API are. */
const NO_SESSION = `/wd/hub/session/ses_AAAAAAAAAAAAAAAAAAAAAA.${'0'.repeat(32)}`;
const KEY = { authorization: `Basic ${btoa('user:any')}` };
const MIB = 1024 * 1024;

let app: Awaited<ReturnType<typeof startApp>>;
let at: string;
beforeAll(async () => {
  app = await startApp();
  at = await app.listen();
});
afterAll(() => app?.[Symbol.asyncDispose]());

type Asked = { headers?: Record<string, string>; body?: string | Buffer };

/** Sends it as it is: fetch would add a Content-Type. */
async function ask(method: string, path: string, { headers = KEY, body }: Asked = {}) {
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const sent = send(at, { method, path, headers: { ...headers, ...length } }).end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const answer = await text(response);
  const value = answer === '' ? null : (JSON.parse(answer) as { value: never }).value;
  const { 'content-type': type, 'cache-control': cache, allow } = response.headers;
  return { status: response.statusCode, type, cache, allow, value: value as unknown };
}

const W3C = { type: 'application/json; charset=utf-8', cache: 'no-cache' };
const refused = (status: number, error: string, message = /./) => ({
  ...W3C,
  status,
  value: expect.objectContaining({
    ...{ error, stacktrace: '' },
    message: expect.stringMatching(message),
  }),
});

/** An invalid capability: the body has been read, and nothing has begun. */
const NEW_SESSION = JSON.stringify({ capabilities: { alwaysMatch: { browserName: 'firefox' } } });
const READ = refused(500, 'session not created', /browserName is chrome/);

test.each([
  [undefined],
  [''],
  ['text/plain'],
  ['text/plain;charset=UTF-8'],
  ['application/json'],
  ['application/json; charset=utf-8'],
  ['application/json; charset=ISO-8859-1'],
  ['application/x-www-form-urlencoded'],
  ['multipart/form-data; boundary=x'],
  ['no type'],
  ['*/*'],
])('a body is read whatever its Content-Type is: %s', async (type) => {
  const headers = { ...KEY, ...(type === undefined ? {} : { 'content-type': type }) };
  expect(await ask('POST', '/wd/hub/session', { headers, body: NEW_SESSION })).toMatchObject(READ);
  // It goes on to a gateway, which there is none of here.
  const command = { headers, body: '{"url":"about:blank"}' };
  expect(await ask('POST', `${NO_SESSION}/url`, command)).toMatchObject({ status: 502, ...W3C });
  expect(await ask('DELETE', NO_SESSION, { headers, body: '{}' })).toMatchObject({ ...W3C });
});

test('a query is no reason to refuse a command', async () => {
  expect(await ask('GET', '/wd/hub/status?x=1')).toMatchObject({ status: 200 });
  const begun = await ask('POST', '/wd/hub/session?x=1', { body: NEW_SESSION });
  expect(begun).toMatchObject(READ);
  expect(await ask('GET', `${NO_SESSION}/url?x=1`)).toMatchObject({ status: 502 });
});

test.each([[''], ['x'], ['[]'], ['null'], ['"x"'], ['{}'], ['{"capabilities":[]}']])(
  'a New Session of the body %j is an invalid argument',
  async (body) => {
    const answer = await ask('POST', '/wd/hub/session', { body });
    expect(answer).toMatchObject(refused(400, 'invalid argument'));
  },
);

test.each([
  [{ acceptInsecureCerts: 1 }],
  [{ pageLoadStrategy: 'Eager' }],
  [{ 'bss:options': { no_such: 1 } }],
  [{ 'bss:options': { duration: '1s' } }],
])('an invalid capability makes no session: %j', async (alwaysMatch) => {
  const body = JSON.stringify({ capabilities: { alwaysMatch } });
  const answer = await ask('POST', '/wd/hub/session', { body });
  expect(answer).toMatchObject(refused(400, 'invalid argument'));
  expect((await app.request('GET', '/api/sessions')).body.sessions).toEqual([]);
});

test('a body that is no UTF-8 is an invalid argument', async () => {
  const body = Buffer.from(NEW_SESSION.replace('firefox', 'M\u00fcller'), 'latin1');
  const answer = await ask('POST', '/wd/hub/session', { body });
  expect(answer).toMatchObject(refused(400, 'invalid argument', /UTF-8/));
});

test('a New Session that is too large says how large it may be', async () => {
  const body = JSON.stringify({ capabilities: {}, pad: 'x'.repeat(MIB) });
  const answer = await ask('POST', '/wd/hub/session', { body });
  expect(answer).toMatchObject(refused(413, 'invalid argument', /1 MiB/));
});

test('a New Session of more JSON values than are parsed is an invalid argument', async () => {
  const pad = Array.from({ length: 250_000 }, () => []);
  const body = JSON.stringify({ ...JSON.parse(NEW_SESSION), pad });
  expect(body.length).toBeLessThan(MIB);
  const answer = await ask('POST', '/wd/hub/session', { body });
  expect(answer).toMatchObject(refused(400, 'invalid argument'));
});

test('status is W3C’s, without a credential', async () => {
  const { status, type, cache, value } = await ask('GET', '/wd/hub/status', { headers: {} });
  expect({ status, type, cache }).toEqual({ status: 200, ...W3C });
  expect(value).toEqual({ ready: true, message: expect.any(String) });
});

describe('what there is not', () => {
  test.each([
    ['GET', '/wd/hub/session', 'POST'],
    ['PUT', '/wd/hub/session', 'POST'],
    ['DELETE', '/wd/hub/session', 'POST'],
    ['POST', '/wd/hub/status', 'GET'],
    ['HEAD', '/wd/hub/status', 'GET'],
    ['GET', NO_SESSION, 'DELETE'],
    ['POST', NO_SESSION, 'DELETE'],
    ['PUT', `${NO_SESSION}/url`, 'GET, POST, DELETE'],
    ['PATCH', `${NO_SESSION}/element/x/text`, 'GET, POST, DELETE'],
    ['OPTIONS', `${NO_SESSION}/url`, 'GET, POST, DELETE'],
    ['HEAD', `${NO_SESSION}/url`, 'GET, POST, DELETE'],
  ])('a method: %s %s', async (method, path, allow) => {
    const answer = await ask(method, path);
    if (method === 'HEAD') expect(answer).toMatchObject({ status: 405, allow, ...W3C });
    else expect(answer).toMatchObject({ ...refused(405, 'unknown method'), allow });
  });

  test.each([
    ['GET', '/wd/hub'],
    ['POST', '/wd/hub/'],
    ['GET', '/wd/hub/sessions'],
    ['POST', '/wd/hub/session/'],
    ['GET', '/wd/hub//session'],
    ['GET', '/wd/hub/status/'],
    ['PATCH', '/wd/hub/nope'],
    ['PROPFIND', '/wd/hub/nope'],
    ['GET', `${NO_SESSION}/`],
    ['GET', `${NO_SESSION}/url/`],
  ])('a command: %s %s', async (method, path) => {
    expect(await ask(method, path)).toMatchObject(refused(404, 'unknown command'));
  });

  test('a session', async () => {
    for (const path of ['/wd/hub/session/none', '/wd/hub/session/none/url']) {
      const method = path.endsWith('url') ? 'GET' : 'DELETE';
      expect(await ask(method, path)).toMatchObject(refused(404, 'invalid session id'));
    }
  });
});

describe('refusals of the service have W3C’s form:', () => {
  const path = '/wd/hub/session';

  test('paths that are no text', async () => {
    const answer = await ask('GET', '/wd/hub/%zz');
    expect(answer).toMatchObject(refused(400, 'invalid argument'));
  });

  test('no Host', async () => {
    const sent = send(at, { method: 'GET', path: '/wd/hub/status', setHost: false }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    expect(JSON.parse(await text(response))).toMatchObject({
      value: { error: 'invalid argument' },
    });
  });

  test('no key, a role that may not, and no units left', async () => {
    const unknown = await ask('POST', path, { headers: {}, body: NEW_SESSION });
    expect(unknown).toMatchObject(refused(401, 'unknown error', /^UNAUTHORIZED/));
    await using small = await startApp(undefined, {
      limits: { requestsPerMinute: 0, concurrentSessions: 1, credits: 1, queueWeight: 1 },
    });
    const limited = await fetch(`${await small.listen()}${path}`, { method: 'POST' });
    expect([limited.status, limited.headers.get('cache-control')]).toEqual([429, 'no-cache']);
    expect(await limited.json()).toMatchObject({
      value: { error: 'unknown error', stacktrace: '' },
    });
    const viewer = { authorization: 'Bearer viewer' };
    const forbidden = await ask('POST', path, { headers: viewer, body: NEW_SESSION });
    expect(forbidden).toMatchObject(refused(403, 'unknown error', /^FORBIDDEN/));
  });

  test('a coding of the body that is not read', async () => {
    const headers = { ...KEY, 'content-encoding': 'zstd' };
    const answer = await ask('POST', path, { headers, body: NEW_SESSION });
    expect(answer).toMatchObject(refused(415, 'invalid argument', /zstd/));
  });

  test('but a body in gzip is read', async () => {
    const headers = { ...KEY, 'content-encoding': 'gzip' };
    const answer = await ask('POST', path, { headers, body: gzipSync(NEW_SESSION) });
    expect(answer).toMatchObject(READ);
  });
});
