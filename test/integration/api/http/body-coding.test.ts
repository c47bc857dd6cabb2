import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FILE_BYTES_MAX, startApp } from '#test/support/service/api-in-memory.ts';

let app: Awaited<ReturnType<typeof startApp>>;
let at: string;
beforeAll(async () => {
  app = await startApp();
  at = await app.listen();
});
afterAll(() => app?.[Symbol.asyncDispose]());

const KEY = { authorization: 'Bearer any' };
const NO_JSON = 64 * 1024;

async function send(path: string, body: Buffer | string, headers: Record<string, string>) {
  const method = path.includes('/files/') ? 'PUT' : 'POST';
  const sent = typeof body === 'string' ? body : new Uint8Array(body);
  const reply = await fetch(at + path, { method, headers: { ...KEY, ...headers }, body: sent });
  return {
    status: reply.status,
    accept: reply.headers.get('accept-encoding'),
    body: (await reply.json()) as Record<string, unknown>,
  };
}
const create = (body: Buffer | string, headers: Record<string, string>) =>
  send('/api/sessions', body, { 'content-type': 'application/json', ...headers });

describe('JSON in a coding', () => {
  const text = JSON.stringify({ session_name: 'packed' });

  test.each([
    ['gzip', gzipSync(text)],
    ['X-GZIP', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
    ['identity', Buffer.from(text)],
  ])('is read: %s', async (coding, body) => {
    const { status, body: session } = await create(body, { 'content-encoding': coding });
    expect([status, session['session_name']]).toEqual([201, 'packed']);
  });

  test.each([['zstd'], ['gzip, gzip'], ['compress'], ['constructor'], ['x'.repeat(9_000)]])(
    'is refused with what is read: %s',
    async (coding) => {
      const refused = await create(text, { 'content-encoding': coding });
      expect(refused).toMatchObject({
        status: 415,
        accept: 'gzip, deflate, br',
        body: { error: 'UNSUPPORTED_MEDIA_TYPE' },
      });
      expect(String(refused.body['message'])).toContain(coding.slice(0, 64));
    },
  );

  test('is refused where it is broken', async () => {
    const whole = gzipSync(text);
    for (const body of [Buffer.from(text), whole.subarray(0, whole.length - 9)])
      expect(await create(body, { 'content-encoding': 'gzip' })).toMatchObject({
        status: 400,
        body: { error: 'INVALID_REQUEST', message: 'The body is not valid gzip.' },
      });
    expect(await create(text, { 'content-encoding': 'br' })).toMatchObject({ status: 400 });
  });

  test('is bounded by what comes out of it', async () => {
    const bomb = gzipSync(Buffer.alloc(40 * NO_JSON, ' '));
    expect(bomb.length).toBeLessThan(NO_JSON);
    expect(await create(bomb, { 'content-encoding': 'gzip' })).toMatchObject({
      status: 413,
      body: { error: 'PAYLOAD_TOO_LARGE' },
    });
  });
});

describe('JSON in a charset', () => {
  const typed = (charset: string) => ({ 'content-type': `application/json; charset=${charset}` });
  const name = 'M\u00fcller';
  const text = JSON.stringify({ session_name: name });

  test.each([
    ['utf-8', Buffer.from(text)],
    ['"UTF-8"', Buffer.from(text)],
    ['utf-8', Buffer.from(`\ufeff${text}`)],
    ['iso-8859-1', Buffer.from(text, 'latin1')],
    ['windows-1252', Buffer.from(text, 'latin1')],
    ['utf-16le', Buffer.from(text, 'utf16le')],
  ])('is read: %s', async (charset, body) => {
    const { status, body: session } = await create(body, typed(charset));
    expect([status, session['session_name']]).toEqual([201, name]);
  });

  test('is refused where it is not known, or not in it', async () => {
    expect(await create(text, typed('klingon'))).toMatchObject({
      status: 415,
      body: { message: 'The charset klingon of the body is not known.' },
    });
    const latin1 = Buffer.from(text, 'latin1');
    for (const charset of ['utf-8', 'UTF8'])
      expect(await create(latin1, typed(charset))).toMatchObject({
        status: 400,
        body: { message: `The body is not valid ${charset.toUpperCase()}.` },
      });
    expect(await create(latin1, {})).toMatchObject({ status: 400 });
  });
});

describe('a file in a coding', () => {
  async function startFiles() {
    const { body } = await app.request('POST', '/api/sessions', {});
    const path = (name: string) => `/api/sessions/${body.id}/files/${name}`;
    const names = async () =>
      (await app.request('GET', `/api/sessions/${body.id}/files`)).body.files.map(
        (file: { name: string }) => file.name,
      );
    return { path, names };
  }

  test('is decoded, whatever its type says', async () => {
    const { path } = await startFiles();
    for (const type of ['text/plain', 'no type']) {
      const packed = { 'content-encoding': 'gzip', 'content-type': type };
      const put = await send(path('a.txt'), gzipSync('hello'), packed);
      expect(put).toMatchObject({ body: { bytes: 5 } });
      expect((await app.download(path('a.txt'))).bytes.toString()).toBe('hello');
    }
  });

  test('leaves nothing where it is refused', async () => {
    const { path, names } = await startFiles();
    const cases = [
      ['zstd', Buffer.from('x'), 415],
      ['gzip', Buffer.from('no gzip'), 400],
      ['gzip', gzipSync(Buffer.alloc(FILE_BYTES_MAX + 1)), 413],
    ] as const;
    for (const [coding, body, status] of cases) {
      const put = await send(path('a.txt'), body, { 'content-encoding': coding });
      expect([coding, put.status]).toEqual([coding, status]);
    }
    expect(await names()).toEqual([]);
  });
});
