import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DOWNLOADS_FOLDER } from '#src/browsers/link/downloads-folder.ts';
import { folderBytes } from '#src/browsers/process/folder-bytes.ts';
import { scratchDir } from '#test/support/scratch.ts';

test('a browser’s folder is what it takes on the disk, without its downloads', async () => {
  await using scratch = await scratchDir();
  const folder = scratch.path;
  const opfs = join(folder, 'profile', 'Default', 'File System');
  await mkdir(opfs, { recursive: true });
  await mkdir(join(folder, DOWNLOADS_FOLDER));
  await writeFile(join(folder, DOWNLOADS_FOLDER, 'large'), Buffer.alloc(1_000_000, 1));
  const before = await folderBytes(folder);
  expect(before).toBeLessThan(50_000);
  await writeFile(join(opfs, 'a'), Buffer.alloc(500_000, 1));
  // A file of holes takes nothing; a link leads nowhere.
  await writeFile(join(opfs, 'holes'), '');
  await truncate(join(opfs, 'holes'), 1e9);
  await symlink(join(folder, DOWNLOADS_FOLDER), join(opfs, 'link'));
  const after = await folderBytes(folder);
  expect(after - before).toBeGreaterThanOrEqual(500_000);
  expect(after - before).toBeLessThan(520_000);
  // Empty files are many inodes.
  for (let at = 0; at < 100; at += 1) await writeFile(join(opfs, `empty${at}`), '');
  expect((await folderBytes(folder)) - after).toBeGreaterThanOrEqual(100_000);
  expect(await folderBytes(join(folder, 'none'))).toBe(0);
});
