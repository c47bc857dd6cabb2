import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { extensionZip, MANIFEST } from '#test/support/extensions/extension-zip.ts';

/** Uploads of an organization that may store 1 MiB, 0.9 of it for what is no profile. */

let app: Awaited<ReturnType<typeof startApp>>;
let apiUrl: string;
beforeAll(async () => {
  app = await startApp(undefined, { organizationMaxBytes: 1024 ** 2 });
  apiUrl = await app.listen();
});
afterAll(() => app?.[Symbol.asyncDispose]());

const headers = { authorization: 'Bearer any' };
const send = (
  path: string,
  method: 'PUT' | 'POST',
  body: Uint8Array<ArrayBuffer> | ReadableStream,
) =>
  fetch(apiUrl + path, {
    ...{ method, body, headers: { ...headers, 'content-type': 'application/zip' } },
    ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
  });
const refused = async (response: Response) => {
  const { error, context } = (await response.json()) as { error: string; context: object };
  return [response.status, error, context];
};
const stored = async () => (await Array.fromAsync(app.objects.list('files/acme/'))).length;

test('uploads of several sessions are refused together, and by a removal there is room', async () => {
  const sessions: string[] = [];
  for (const _ of ['one', 'two'])
    sessions.push((await app.request('POST', '/api/sessions', {})).body.id);
  const [one, two] = sessions.map((id) => `/api/sessions/${id}/files`);
  const bytes = new Uint8Array(600_000);
  expect((await send(`${one}/a`, 'PUT', bytes)).status).toBe(201);
  const full = [429, 'STORAGE_LIMIT_EXCEEDED', { max_bytes: 943_718 }];
  expect(await refused(await send(`${two}/b`, 'PUT', bytes))).toEqual(full);
  // Its length is not known before.
  const stream = new Blob([bytes]).stream();
  expect(await refused(await send(`${two}/b`, 'PUT', stream))).toEqual(full);
  expect(await stored()).toBe(1);
  const large = Uint8Array.from(
    await extensionZip(MANIFEST, { 'code/mark.js': Buffer.from(randomText(400_000)) }),
  );
  expect(await refused(await send('/api/extensions', 'POST', large))).toEqual(full);
  expect((await app.request('GET', '/api/extensions')).body).toEqual({ extensions: [] });

  expect((await app.request('DELETE', `${one}/a`)).status).toBe(204);
  expect((await send(`${two}/b`, 'PUT', bytes)).status).toBe(201);
});

/** Text that a zip makes little smaller. */
function randomText(length: number): string {
  return Buffer.from(Array.from({ length }, (_, at) => (at * at * 2_654_435_761) % 251)).toString(
    'base64',
  );
}
