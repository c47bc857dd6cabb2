import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { runApiCommand } from '#test/support/clients/api-command.ts';
import { extensionZip } from '#test/support/extensions/extension-zip.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** `bss extension` on the API, with everything in this process's memory. */

let app: Awaited<ReturnType<typeof startApp>>;
let url: string;
beforeAll(async () => {
  app = await startApp();
  url = await app.listen();
});
afterAll(() => app?.[Symbol.asyncDispose]());
beforeEach(() => {
  vi.stubEnv('BSS_API_KEY', 'admin/ada');
  return () => vi.unstubAllEnvs();
});

const extension = (words: string, ...operands: readonly string[]) =>
  runApiCommand(`extension ${words}`, operands, url);

test('an extension is uploaded once, listed and removed', async () => {
  await using folder = await scratchDir();
  const file = join(folder.path, 'marker.zip');
  await writeFile(file, await extensionZip());
  const uploaded = await extension('upload', file);
  const id: string = uploaded.json?.['id'] ?? expect.unreachable('it was refused');
  expect(uploaded.text).toMatch(/^ext_[0-9a-f]{32}: \S/);
  expect((await extension('upload', file)).json?.['id']).toBe(id);
  const listed = await extension('list');
  expect(listed.json).toMatchObject([{ id }]);
  expect(listed.text).toContain(id);
  expect((await extension('remove', id)).text).toBe(`extension ${id} is removed`);
  expect((await extension('list')).json).toEqual([]);
  expect((await extension('remove', id)).refusal).toBe('EXTENSION_NOT_FOUND');
});

test('what is no extension, and a file that is not there, are refused with the reason', async () => {
  await using folder = await scratchDir();
  const file = join(folder.path, 'no.zip');
  await writeFile(file, 'no zip');
  expect((await extension('upload', file)).refusal).toBe('INVALID_EXTENSION');
  const missing = await extension('upload', join(folder.path, 'missing.zip'));
  expect([missing.refusal, missing.message]).toEqual([
    'INVALID_REQUEST',
    expect.stringContaining('ENOENT'),
  ]);
});
