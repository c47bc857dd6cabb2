import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, test, vi } from 'vitest';
import { filesPrefix } from '#src/kernel/domain/session/files.ts';
import { openConnection, uploadHead } from '#test/support/http/raw-connection.ts';
import { FILE_BYTES_MAX, FILES_RETAIN_MS, startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';

/** The files of sessions over the API; the browsers are simulated. */

let app: Awaited<ReturnType<typeof startApp>>;
let apiUrl: string;
let id: string;
beforeAll(async () => {
  app = await startApp();
  apiUrl = await app.listen();
  id = await newSession();
});
afterAll(() => app?.[Symbol.asyncDispose]());

async function newSession(): Promise<string> {
  return (await app.request('POST', '/api/sessions', {})).body.id;
}

type File = { name: string; bytes: number; sha256: string; origin: string; path: string };
const bytesOf = (length: number) => Buffer.from(Array.from({ length }, (_, at) => (at * 7) % 256));
const sha256Of = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const ENCODED = 'Z%C3%BCrich%20%E2%98%83.bin';
const bearer = { authorization: 'Bearer any' };
const fileUrl = (name: string, session = id) =>
  `${apiUrl}/api/sessions/${session}/files/${encodeURIComponent(name)}`;
const put = (
  name: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  session = id,
  headers: Record<string, string> = {},
) =>
  fetch(fileUrl(name, session), {
    method: 'PUT',
    body,
    headers: { ...bearer, ...headers },
    ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
  });
const get = (name: string, headers: Record<string, string> = {}, session = id) =>
  fetch(fileUrl(name, session), { headers: { ...bearer, ...headers } });
async function list(session = id): Promise<File[]> {
  const response = await fetch(`${apiUrl}/api/sessions/${session}/files`, { headers: bearer });
  return ((await response.json()) as { files: File[] }).files;
}
const errorOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: string };
  return `${response.status} ${error}`;
};
async function objectsOf(session: string): Promise<number> {
  const prefix = filesPrefix({ organizationId: 'acme', id: session });
  return (await Array.fromAsync(app.objects.list(prefix))).length;
}

describe('an upload', () => {
  it('is in the browser’s folder, in the list, and is read unchanged', async () => {
    const session = await newSession();
    const bytes = bytesOf(100_000);
    const response = await put('Zu\u0308rich ☃.bin', bytes, session);
    expect(response.status).toBe(201);
    const file = {
      name: 'Z\u00fcrich ☃.bin',
      bytes: 100_000,
      sha256: sha256Of(bytes),
      created_at: expect.any(String),
      origin: 'upload',
    };
    const path = '/simulated/downloads/Z\u00fcrich ☃.bin';
    expect(await response.json()).toEqual({ ...file, path });
    expect(await list(session)).toEqual([file]);
    const read = await get('Z\u00fcrich ☃.bin', {}, session);
    expect(Object.fromEntries(read.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '100000',
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'content-disposition': `attachment; filename="Z_rich _.bin"; filename*=UTF-8''${ENCODED}`,
      etag: `"${sha256Of(bytes)}"`,
    });
    expect(Buffer.from(await read.arrayBuffer()).equals(bytes)).toBe(true);
  });

  it('replaces one of the same name, of which nothing is left', async () => {
    const session = await newSession();
    expect((await put('a.json', '{"one":1}', session)).status).toBe(201);
    const headers = { 'content-type': 'application/json' };
    expect((await put('a.json', 'no JSON at all', session, headers)).status).toBe(200);
    expect(await (await get('a.json', {}, session)).text()).toBe('no JSON at all');
    expect(await list(session)).toHaveLength(1);
    expect(await objectsOf(session)).toBe(1);
  });

  it('may be empty, and may come without a length', async () => {
    const session = await newSession();
    expect((await put('empty', '', session)).status).toBe(201);
    const body = new Blob(['abc', 'def']).stream();
    expect((await put('chunked', body, session)).status).toBe(201);
    expect(await (await get('empty', {}, session)).text()).toBe('');
    expect(await (await get('chunked', {}, session)).text()).toBe('abcdef');
    expect((await list(session)).map(({ bytes }) => bytes)).toEqual([0, 6]);
  });

  test.each([
    ['with its length', () => bytesOf(FILE_BYTES_MAX + 1)],
    ['without', () => new Blob([bytesOf(FILE_BYTES_MAX + 1)]).stream()],
    ['without, and by much', () => new Blob([new Uint8Array(8 * FILE_BYTES_MAX)]).stream()],
  ])('that is too large is refused, sent %s', async (_, body) => {
    const session = await newSession();
    expect(await errorOf(await put('large', body(), session))).toBe('413 FILE_TOO_LARGE');
    expect([await list(session), await objectsOf(session)]).toEqual([[], 0]);
  });

  it('is refused where the session’s files are too large together', async () => {
    const session = await newSession();
    for (const name of ['a', 'b'])
      expect((await put(name, bytesOf(FILE_BYTES_MAX), session)).status).toBe(201);
    expect(await errorOf(await put('c', 'c', session))).toBe('413 FILES_QUOTA_EXCEEDED');
    expect((await put('b', 'less', session)).status).toBe(200);
    expect((await put('c', 'c', session)).status).toBe(201);
  });

  it('beside others is refused before a byte is stored where they have the room', async () => {
    const session = await newSession();
    const stored = vi.spyOn(app.objects, 'put');
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const answers = await Promise.all(
      names.map(async (name) => (await put(name, bytesOf(FILE_BYTES_MAX), session)).status),
    );
    expect(answers.toSorted()).toEqual([201, 201, 413, 413, 413, 413]);
    expect(stored).toHaveBeenCalledTimes(2);
    stored.mockRestore();
  });

  it('that breaks off leaves nothing', async () => {
    const session = await newSession();
    const { hostname, port } = new URL(apiUrl);
    const socket = connect(Number(port), hostname);
    socket.write(
      `PUT /api/sessions/${session}/files/half HTTP/1.1\r\nHost: a\r\n` +
        'Authorization: Bearer any\r\nContent-Length: 1000\r\n\r\nonly this',
    );
    await eventually(async () => socket.bytesWritten > 0, 'the upload has begun');
    socket.destroy();
    expect((await put('whole', 'all of it', session)).status).toBe(201);
    expect((await list(session)).map(({ name }) => name)).toEqual(['whole']);
    await eventually(async () => (await objectsOf(session)) === 1, 'nothing is left of it');
  });

  it('that breaks off leaves its room to others', async () => {
    const session = await newSession();
    const stored = vi.spyOn(app.objects, 'put');
    const broken = await Promise.all(['a', 'b'].map(() => openConnection(new URL(apiUrl))));
    for (const [at, socket] of broken.entries())
      socket.write(`${uploadHead(session, `half-${at}`, FILE_BYTES_MAX)}x`);
    await eventually(async () => stored.mock.calls.length === 2, 'they hold all of it');
    stored.mockRestore();
    expect((await put('whole', 'all of it', session)).status).toBe(413);
    for (const socket of broken) socket.destroy();
    await eventually(
      async () => (await put('whole', 'all of it', session)).status === 201,
      'it is free again',
    );
  });

  test.each(['../../x', 'a/b', 'nul\0', '.hidden', 'CON', 'x'.repeat(256), 'what?'])(
    'is refused with the name %j',
    async (name) => {
      const response = await put(name, 'x');
      expect(response.status).toBe(400);
      const { error, context } = (await response.json()) as Refused;
      expect(error).toBe('INVALID_FILE_NAME');
      expect((await put(context.suggestion, 'x')).ok).toBe(true);
    },
  );
  type Refused = { error: string; context: { suggestion: string } };

  it('needs an active session, and a role that may', async () => {
    expect(await errorOf(await put('a', 'a', 'ses_none'))).toBe('404 SESSION_NOT_FOUND');
    const ended = await newSession();
    await app.request('DELETE', `/api/sessions/${ended}`);
    expect(await errorOf(await put('a', 'a', ended))).toBe('410 SESSION_ENDED');
    const viewer = { authorization: 'Bearer viewer' };
    expect(await errorOf(await put('a', 'a', id, viewer))).toBe('403 FORBIDDEN');
    expect((await fetch(fileUrl('x'), { headers: viewer })).status).toBe(200);
    const other = { authorization: 'Bearer other' };
    expect((await fetch(fileUrl('x'), { headers: other })).status).toBe(404);
  });
});

describe('a read', () => {
  const bytes = bytesOf(1_000);
  let etag = '';
  beforeAll(async () => {
    await put('r.bin', bytes);
    etag = `"${sha256Of(bytes)}"`;
  });

  test.each([
    ['bytes=0-9', 'bytes 0-9/1000', 0, 10],
    ['bytes=990-', 'bytes 990-999/1000', 990, 1000],
    ['bytes=-5', 'bytes 995-999/1000', 995, 1000],
    ['bytes=900-5000', 'bytes 900-999/1000', 900, 1000],
    ['bytes=-5000', 'bytes 0-999/1000', 0, 1000],
  ])('goes on where it broke off: %s', async (range, contentRange, from, to) => {
    const response = await get('r.bin', { range });
    expect([response.status, response.headers.get('content-range')]).toEqual([206, contentRange]);
    expect(response.headers.get('content-length')).toBe(`${to - from}`);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(bytes.subarray(from, to));
  });

  it('is whole where the file is another one, or the range is none', async () => {
    const changed = { range: 'bytes=0-9', 'if-range': '"other"' };
    expect((await get('r.bin', changed)).status).toBe(200);
    expect((await get('r.bin', { range: 'bytes=0-9', 'if-range': etag })).status).toBe(206);
    for (const range of ['bytes=1-2,5-6', 'bytes=9-1', 'lines=1-2', 'bytes=-'])
      expect((await get('r.bin', { range })).status).toBe(200);
  });

  it('behind the end is 416', async () => {
    const response = await get('r.bin', { range: 'bytes=1000-' });
    expect(response.headers.get('content-range')).toBe('bytes */1000');
    expect(await errorOf(response)).toBe('416 RANGE_NOT_SATISFIABLE');
  });

  it('of what the client has is 304', async () => {
    const response = await get('r.bin', { 'if-none-match': etag });
    expect([response.status, await response.text()]).toEqual([304, '']);
  });

  it('by HEAD tells the length alone', async () => {
    const response = await fetch(fileUrl('r.bin'), { method: 'HEAD', headers: bearer });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-length')).toBe('1000');
    expect(await response.text()).toBe('');
  });

  it('of a name that is not there is 404', async () => {
    for (const name of ['none', '../../etc/passwd', 'a\0b'])
      expect(await errorOf(await get(name))).toBe('404 FILE_NOT_FOUND');
  });
});

it('is removed from the folder and from what is kept', async () => {
  const session = await newSession();
  await put('a', 'a', session);
  const remove = () => fetch(fileUrl('a', session), { method: 'DELETE', headers: bearer });
  expect((await remove()).status).toBe(204);
  expect(await errorOf(await remove())).toBe('404 FILE_NOT_FOUND');
  expect([await list(session), await objectsOf(session)]).toEqual([[], 0]);
});

it('all of a session’s are a zip', async () => {
  const session = await newSession();
  const zipUrl = `${apiUrl}/api/sessions/${session}/files.zip`;
  await put('a.txt', 'first', session);
  await put('ü.txt', 'second', session);
  const response = await fetch(zipUrl, { headers: bearer });
  const zip = Buffer.from(await response.arrayBuffer());
  expect(response.headers.get('content-length')).toBe(`${zip.length}`);
  expect(zip.subarray(0, 4).toString('latin1')).toBe('PK\u0003\u0004');
  for (const text of ['a.txt', 'first', 'ü.txt', 'second']) expect(zip.includes(text)).toBe(true);
});

it('are read until FILES_RETAIN after the end', async () => {
  const session = await newSession();
  await put('kept', 'kept', session);
  await app.request('DELETE', `/api/sessions/${session}`);
  await eventually(
    async () => (await app.request('GET', `/api/sessions/${session}`)).body.status === 'stopped',
    'the session has stopped',
  );
  expect(await (await get('kept', {}, session)).text()).toBe('kept');
  app.pass(FILES_RETAIN_MS + 1_000);
  expect(await list(session)).toEqual([]);
  expect(await errorOf(await get('kept', {}, session))).toBe('404 FILE_NOT_FOUND');
});
