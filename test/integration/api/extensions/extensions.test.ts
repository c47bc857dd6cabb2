import { expect, test } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { extensionZip } from '#test/support/extensions/extension-zip.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

const { beforeAll, afterAll } = useVirtualTime();

type App = Awaited<ReturnType<typeof startApp>>;
let app: App;
beforeAll(async () => void (app = await startApp()));
afterAll(() => app[Symbol.asyncDispose]());

const ZIP = { 'content-type': 'application/zip' };
const upload = (body: Buffer, headers: Record<string, string> = ZIP) =>
  app.request('POST', '/api/extensions', body, headers);

test('an extension is uploaded once, listed, named by a session and removed', async () => {
  const zip = await extensionZip();
  const { status, body } = await upload(zip);
  expect(status).toBe(201);
  expect(body).toMatchObject({ name: 'Marker', version: '1.2', bytes: zip.length });
  expect(body.id).toMatch(/^ext_[0-9a-f]{32}$/);
  const again = await upload(zip, { 'content-type': 'application/x-chrome-extension' });
  expect([again.status, again.body]).toEqual([200, body]);
  expect((await app.request('GET', '/api/extensions')).body).toEqual({ extensions: [body] });
  const path = `/api/extensions/${body.id}`;
  expect((await app.request('GET', path)).body).toEqual(body);

  const key = { 'idempotency-key': 'with-an-extension' };
  const asked = { extensions: [body.id] };
  const created = await app.request('POST', '/api/sessions', asked, key);
  expect([created.status, created.body.extensions]).toEqual([201, [body.id]]);

  expect((await app.request('DELETE', path)).status).toBe(204);
  expect((await app.request('GET', '/api/extensions')).body).toEqual({ extensions: [] });
  for (const method of ['GET', 'DELETE'] as const) {
    const gone = await app.request(method, path);
    expect([gone.status, gone.body.error]).toEqual([404, 'EXTENSION_NOT_FOUND']);
  }
  // A repeat is of the session that was accepted; another session needs what is there.
  const repeated = await app.request('POST', '/api/sessions', asked, key);
  expect([repeated.status, repeated.body.id]).toEqual([201, created.body.id]);
  const refused = await app.request('POST', '/api/sessions', asked);
  expect([refused.status, refused.body.error]).toEqual([400, 'UNKNOWN_EXTENSION']);
  expect(refused.body.context).toEqual({ extension_ids: [body.id] });
});

test('what is no extension is refused with what is wrong', async () => {
  const { status, body } = await upload(Buffer.from('{}'), { 'content-type': 'application/json' });
  expect([status, body.error]).toEqual([400, 'INVALID_EXTENSION']);
  expect(body.message).toContain('not a zip');
  const large = await upload(Buffer.alloc(20 * 1024 ** 2 + 1));
  expect([large.status, large.body.error]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  const bomb = await upload(await extensionZip('[],'.repeat(33 * 1024 ** 2)));
  expect([bomb.status, bomb.body.error]).toEqual([400, 'INVALID_EXTENSION']);
  expect(bomb.body.message).toContain('manifest.json has more than 262144 bytes');
  const empty = await app.request('POST', '/api/extensions');
  expect([empty.status, empty.body.error]).toEqual([400, 'INVALID_EXTENSION']);
});

test('a session has none by default, and at most eight', async () => {
  const { body } = await app.request('POST', '/api/sessions', { extensions: [] });
  expect(body.extensions).toEqual([]);
  const extensions = Array.from({ length: 9 }, (_, at) => `ext_${at}`);
  const many = await app.request('POST', '/api/sessions', { extensions });
  expect([many.status, many.body.context.field]).toEqual([400, 'extensions']);
});
