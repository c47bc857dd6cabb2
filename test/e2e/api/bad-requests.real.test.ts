import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { readOpenApi } from '#src/start/read-openapi.ts';
import { errorOf, type ApiClient, type Sent } from '#test/support/clients/api-client.ts';
import { startCommandLoad, named, type CommandLoad } from '#test/support/load/command-load.ts';

/** Every invalid request gets the specified error, never a 500, and has no effect. */

const { paths } = await readOpenApi();

let load: CommandLoad;
let api: ApiClient;
beforeAll(async () => {
  load = await startCommandLoad();
  ({ api } = load);
});
afterAll(() => load?.[Symbol.asyncDispose]());

const UNKNOWN_ID = 'ses_AAAAAAAAAAAAAAAAAAAAAA';

const ODD_IDS =
  'unknown a.b * %3E %20 %2F a%2Fb ..%2Fstatus %2e%2e %00 %0d%0a %C3%A4 %F0%9F%98%80 %ED%A0%80 ' +
  "evt.dev.session dev%2Fx '-- __proto__ constructor null undefined -1";
const BAD_IDS = [...ODD_IDS.split(' '), UNKNOWN_ID, 'x'.repeat(65), 'x'.repeat(10_000)];
/** The id in the path once it is decoded. */
const sentId = (id: string) => {
  try {
    return decodeURIComponent(id);
  } catch {
    return null;
  }
};

describe('an unknown session id is SESSION_NOT_FOUND on every route', () => {
  test.each(named(BAD_IDS))('%s', async (_, id) => {
    const path = `/api/sessions/${id}`;
    const replies = await Promise.all([
      api.get(path),
      api.get(`${path}/access`),
      api.send('POST', `${path}/extend`, { body: { duration: '1h' } }),
      api.send('DELETE', path),
    ]);
    // The error cannot contain an id that is not UTF-8.
    const decoded = sentId(id);
    for (const reply of replies)
      if (decoded === null) expect(errorOf(reply)).toBe('400 INVALID_REQUEST');
      else {
        expect(errorOf(reply)).toBe('404 SESSION_NOT_FOUND');
        expect(reply.body.context).toEqual({ session_id: decoded });
      }
  });

  test.each(['a b', '>', 'ä', '\u0001', '"', '<script>', 'ses_\u00ff'])(
    'unescaped on the wire: %j',
    async (id) => {
      const reply = await api.raw(
        `GET /api/sessions/${id} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${load.key}\r\n\r\n`,
      );
      expect(errorOf(reply)).toMatch(/^(404 SESSION_NOT_FOUND|400 INVALID_REQUEST)$/);
    },
  );

  it('empty', async () => {
    for (const reply of [
      await api.get('/api/sessions/'),
      await api.get('/api/sessions//access'),
      await api.send('DELETE', '/api/sessions/'),
      await api.extend('', '1h'),
    ]) {
      expect(errorOf(reply)).toBe('404 SESSION_NOT_FOUND');
      expect(reply.body.context).toEqual({ session_id: '' });
    }
  });
});

describe('paths and methods', () => {
  test.each(['/api', '/api/', '/api/session', '/api/sessions/a/b/c', '/api/v1/sessions', '/x'])(
    '%s is not found',
    async (path) => {
      const reply = await api.get(path);
      expect(errorOf(reply)).toBe('404 NOT_FOUND');
      expect(reply.body.context).toEqual({ path });
    },
  );

  test.each([
    ['PUT', '/api/sessions', 'POST, GET, HEAD'],
    ['DELETE', '/api/sessions', 'POST, GET, HEAD'],
    ['PUT', `/api/sessions/${UNKNOWN_ID}`, 'GET, HEAD, PATCH, DELETE'],
    ['POST', `/api/sessions/${UNKNOWN_ID}`, 'GET, HEAD, PATCH, DELETE'],
    ['GET', `/api/sessions/${UNKNOWN_ID}/extend`, 'POST'],
    ['POST', `/api/sessions/${UNKNOWN_ID}/access`, 'GET, HEAD'],
    ['POST', '/api/status', 'GET, HEAD'],
    ['DELETE', '/api/health', 'GET, HEAD'],
    ['OPTIONS', '/api/sessions', 'POST, GET, HEAD'],
    ['PROPFIND', '/api/sessions', 'POST, GET, HEAD'],
    ['QUERY', '/api/sessions', 'POST, GET, HEAD'],
    ['M-SEARCH', '/api/sessions', 'POST, GET, HEAD'],
  ])('%s %s is not allowed', async (method, path, allow) => {
    const reply = await api.send(method, path);
    expect(errorOf(reply)).toBe('405 METHOD_NOT_ALLOWED');
    expect(reply.headers.allow).toBe(allow);
    expect(reply.body.context).toEqual({ method, allow: allow.split(', ') });
  });

  it('are checked before the body', async () => {
    const sent: Sent = { body: '<a/>', headers: { 'content-type': 'application/xml' } };
    expect(errorOf(await api.send('POST', '/nowhere', sent))).toBe('404 NOT_FOUND');
    expect(errorOf(await api.send('PUT', '/api/sessions', sent))).toBe('405 METHOD_NOT_ALLOWED');
    expect(errorOf(await api.send('PUT', '/api/sessions', { body: '{' }))).toMatch(/^405/);
  });

  it('HEAD answers as GET, without a body', async () => {
    const reply = await api.send('HEAD', `/api/sessions/${load.session}`);
    expect([reply.status, reply.body]).toEqual([200, null]);
    expect((await api.send('HEAD', `/api/sessions/${UNKNOWN_ID}`)).status).toBe(404);
  });
});

describe('a list is refused for', () => {
  const numbers =
    'limit=0 limit=101 limit=-1 limit=1.5 limit= limit=ten limit=1e1 limit=99999999999999999999 ' +
    'limit=5&limit=6 limit[]=5 limit=%20 limit=0x10 offset=-1 offset=x offset= ' +
    'offset=1&offset=2 offset=99999999999999999';
  const words =
    'status= status=Active status=running status=active&status=failed status[]=active ' +
    'status=active%00 label= label=a label==b nope=1 __proto__=1 constructor=1 page=2 toString=1';
  const nineLabels = `label=a=1${'&label=a=1'.repeat(8)}`;
  const queries = [...numbers.split(' '), ...words.split(' '), nineLabels];
  test.each(queries)('?%s', async (query) => {
    expect(errorOf(await api.get(`/api/sessions?${query}`))).toBe('400 INVALID_REQUEST');
  });

  it('no unusual but valid query', async () => {
    for (const query of ['', 'limit=100', 'offset=9007199254740991', 'label=a=b=c', 'limit=007'])
      expect((await api.get(`/api/sessions?${query}`)).status).toBe(200);
  });
});

describe('an unknown query parameter is refused, and the error names the known ones', () => {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters }]) => {
      const known = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
      return [method.toUpperCase(), path.replace(/{\w+}/, UNKNOWN_ID), known] as const;
    }),
  );
  test.each(operations)('%s %s', async (method, path, known) => {
    const client = path.startsWith('/api/operator') ? load.operator : api;
    const reply = await client.send(method, `${path}?nope=1&constructor=2`);
    expect(errorOf(reply)).toBe('400 INVALID_REQUEST');
    expect(reply.body.context).toEqual({ unknown: ['nope', 'constructor'], known });
  });
});

describe('requests that Node would answer by itself', () => {
  test.each([
    ['an expectation of more', 'Expect: miracles\r\n', '200'],
    ['an upgrade', 'Connection: Upgrade\r\nUpgrade: websocket\r\n', '200'],
    ['an upgrade to HTTP/2', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n', '200'],
    ['a trailer', 'TE: trailers\r\nConnection: close\r\n', '200'],
  ])('%s', async (_, header, status) => {
    const reply = await api.raw(`GET /api/health HTTP/1.1\r\nHost: localhost\r\n${header}\r\n`);
    expect(errorOf(reply)).toBe(status);
  });
});

describe('bytes that are not HTTP', () => {
  const broken = [
    'HELLO\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'GET /api/health HTTP/1.1\r\n\r\n',
    'GET /api/health HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n',
    'GET /api/health HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n',
    'FOO /api/health HTTP/1.1\r\nHost: a\r\n\r\n',
    'POST /api/sessions HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n' +
      'Transfer-Encoding: chunked\r\n\r\n',
    `GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(100_000)}\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: a\r\n${'X-Many: 1\r\n'.repeat(10_000)}\r\n`,
    'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003\r\n\r\n',
  ];
  test.each(named(broken))('%s', async (_, bytes) => {
    const reply = await api.raw(bytes);
    expect(errorOf(reply)).toBe('400 INVALID_REQUEST');
  });
});

describe.concurrent('a connection that waits', () => {
  const LISTENERS = ['API', 'gateway'] as const;
  /** Connects to the listener, sends the bytes alone, and resolves with all that it answers. */
  async function answerOf(listener: (typeof LISTENERS)[number], bytes: string): Promise<string> {
    const { cdp_url: gateway } = (await api.get(`/api/sessions/${load.session}`)).body;
    const { hostname, port } = new URL(listener === 'API' ? load.apiUrl : gateway);
    const socket = connect(Number(port), hostname);
    socket.write(bytes);
    return text(socket);
  }

  it('is answered, if its request does not arrive completely', async ({ expect }) => {
    const head =
      `POST /api/sessions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${load.key}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 9\r\n\r\n';
    const reply = await api.raw(`${head}{`);
    expect(errorOf(reply)).toBe('400 INVALID_REQUEST');
    expect(reply.body.message).toContain('not arrived whole');
  });

  // Browsers open connections ahead. They would take the answer for that of their next request.
  it.for(LISTENERS)(
    'is closed by the %s without an answer, if nothing arrives',
    async (listener, { expect }) => {
      expect(await answerOf(listener, '')).toBe('');
    },
  );

  it.for(LISTENERS)(
    'is answered by the %s after half a request line',
    async (listener, { expect }) => {
      const [head = '', body = ''] = (await answerOf(listener, 'GET / HT')).split('\r\n\r\n');
      expect(head).toMatch(/^HTTP\/1\.1 400 /);
      expect(JSON.parse(body)).toMatchObject({ error: 'INVALID_REQUEST' });
    },
  );
});

it('the refused requests have changed nothing', () => load.expectUnchanged(280));
