import { mkdir, readdir, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { knownOf } from '#src/start/embedded/known-files.mjs';
import { scratchDir } from '#test/support/scratch.ts';

/** No file of a test has changed a moment ago, as seen from then. */
const LATER_MS = 60_000;
/** A time that a file can be given without loss. */
const TIME = new Date('2026-11-01T00:00:00Z');
const files = ['a.ts', 'b.ts', 'missing.ts'];

let folder: Awaited<ReturnType<typeof scratchDir>>;
let found: number;
beforeEach(async () => {
  folder = await scratchDir();
  found = 0;
  await mkdir(join(folder.path, '.tools'));
  for (const name of ['a.ts', 'b.ts']) await writeFile(join(folder.path, name), name);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + LATER_MS });
});
afterEach(async () => {
  vi.useRealTimers();
  await folder[Symbol.asyncDispose]();
});

/** How often the value had to be found so far. */
function ask(value: string | null = 'value'): number {
  const find = () => ((found += 1), value);
  expect(knownOf(folder.path, { name: 'test', files }, find)).toBe(value);
  return found;
}

test('a value is found once for files that stay as they are', () => {
  expect([ask(), ask(), ask()]).toEqual([1, 1, 1]);
});

test('a change that keeps size and time of the content has the value found anew', async () => {
  const path = join(folder.path, 'b.ts');
  await utimes(path, TIME, TIME);
  expect(ask()).toBe(1);
  const before = await stat(path);
  await writeFile(path, 'B.ts');
  await utimes(path, TIME, TIME);
  const { ino, size, mtimeMs } = await stat(path);
  expect([ino, size, mtimeMs]).toEqual([before.ino, before.size, before.mtimeMs]);
  expect([ask(), ask()]).toEqual([2, 2]);
});

test('so has a file in the place of another, one that is new, and one that is gone', async () => {
  const at = (name: string) => join(folder.path, name);
  await writeFile(at('other'), 'a.ts');
  expect(ask()).toBe(1);
  await rename(at('other'), at('a.ts'));
  expect([ask(), ask()]).toEqual([2, 2]);
  await writeFile(at('missing.ts'), '');
  expect([ask(), ask()]).toEqual([3, 3]);
  await rename(at('missing.ts'), at('other'));
  expect([ask(), ask()]).toEqual([4, 4]);
});

test('nothing is kept of files that have changed a moment ago, nor where nothing was found', () => {
  expect([ask(null), ask(null)]).toEqual([1, 2]);
  vi.setSystemTime(Date.now() - LATER_MS);
  expect([ask(), ask()]).toEqual([3, 4]);
});

test('a damaged record is replaced, and one that cannot be written is done without', async () => {
  const record = join(folder.path, '.tools/test.known');
  await writeFile(record, '{"state":');
  expect([ask(), ask()]).toEqual([1, 1]);
  await rename(record, `${record}.away`);
  await mkdir(join(record, 'full'), { recursive: true });
  expect([ask(), ask()]).toEqual([2, 3]);
  expect(await readdir(join(folder.path, '.tools'))).toEqual(['test.known', 'test.known.away']);
});
