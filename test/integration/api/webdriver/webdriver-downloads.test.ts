import { afterAll, beforeAll, expect, test } from 'vitest';
import { unzipped } from '#test/support/http/unzipped.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import { fileKey } from '#src/kernel/domain/session/files.ts';
import { base64Length, base64Of } from '#src/features/webdriver/base64-stream.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** What the browser has downloaded, as Selenium's clients ask a Grid for it. */

let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app?.[Symbol.asyncDispose]());

/** A session with the given files, and where WebDriver asks for its downloads. */
async function startSession(
  files: Record<string, string> = {},
  origin: 'download' | 'upload' = 'download',
) {
  const { id } = (await app.request('POST', '/api/sessions', {})).body;
  const session = { organizationId: 'acme', id };
  for (const [name, text] of Object.entries(files)) {
    const fileId = `fil_${name.length}`;
    const content = Buffer.from(text);
    const { bytes, sha256 } = await app.objects.put(
      fileKey(session, fileId),
      (async function* () {
        yield content;
      })(),
    );
    const file = { fileId, name, bytes, sha256, origin };
    await handleCommand<'session'>(
      app.context,
      { kind: 'session', ...session },
      (state) => decide({ type: 'RecordFileAdded', ...file, now: app.now() }, state),
      newMetadata('test'),
    );
  }
  return { id, path: `/wd/hub/session/${id}.${'0'.repeat(32)}/se/files` };
}

test('they are listed, read in a zip, and no uploads are among them', async () => {
  const name = 'Z\u00fcrich "1".txt'.replaceAll('"', '_');
  const { path } = await startSession({ [name]: 'hello', empty: '' });
  const listed = await app.request('GET', path);
  expect(listed).toMatchObject({
    status: 200,
    body: { value: { names: [name, 'empty'], files: [{ name, size: 5 }, { size: 0 }] } },
  });
  for (const [asked, text] of [
    [name, 'hello'],
    ['empty', ''],
  ]) {
    const { status, body } = await app.request('POST', path, { name: asked });
    expect([status, body.value.filename]).toEqual([200, asked]);
    expect(await unzipped(body.value.contents)).toEqual([[asked, text]]);
  }
  const uploads = await startSession({ 'a.txt': 'a' }, 'upload');
  expect((await app.request('GET', uploads.path)).body.value.names).toEqual([]);
});

test('what there is not is an error of W3C’s', async () => {
  const { id, path } = await startSession();
  for (const body of [{ name: 'a' }, { name: 1 }, {}]) {
    const answer = await app.request('POST', path, body);
    expect(answer).toMatchObject({ status: 400, body: { value: { error: 'invalid argument' } } });
  }
  expect(await app.request('DELETE', path)).toEqual({ status: 200, body: { value: null } });
  await app.request('DELETE', `/api/sessions/${id}`);
  for (const method of ['GET', 'DELETE'] as const)
    for (const at of [path, '/wd/hub/session/none/se/files'])
      expect(await app.request(method, at)).toMatchObject({
        status: 404,
        body: { value: { error: 'invalid session id' } },
      });
  const other = { authorization: 'Bearer other' };
  const theirs = await startSession({ 'a.txt': 'a' });
  expect(await app.request('GET', theirs.path, undefined, other)).toMatchObject({ status: 404 });
});

test.each([[[]], [[1]], [[1, 1]], [[2, 3, 4]], [[50_000, 1, 49_152, 7]], [[200_000]]])(
  'base64 of pieces of %j bytes is that of all',
  async (lengths) => {
    const pieces = lengths.map((length) => Buffer.alloc(length, String(length)));
    const whole = Buffer.concat(pieces).toString('base64');
    async function* source() {
      yield* pieces;
    }
    expect((await Array.fromAsync(base64Of(source()))).join('')).toBe(whole);
    expect(base64Length(Buffer.concat(pieces).length)).toBe(whole.length);
  },
);
