import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openFolderFiles } from '#src/archive/archive-files.folder.ts';
import {
  CorruptSegment,
  dataName,
  indexName,
  type SegmentManifest,
} from '#src/archive/manifest.ts';
import { readBackInThread } from '#src/bootstrap/read-back-thread.ts';
import { recordsFrom, seal } from '#test/support/archive/archive.fixture.ts';
import { scratchDir } from '#test/support/scratch.ts';

/** The second is read back in a thread of its own. */
describe.each([{ records: 500 }, { records: 21_000 }])('a segment of $records records', (size) => {
  async function sealIn(folder: string): Promise<SegmentManifest> {
    const files = openFolderFiles(folder);
    const [manifest] = await seal(files, recordsFrom(1, size.records));
    if (manifest === undefined) throw new Error('nothing was sealed');
    return manifest;
  }
  async function alter(folder: string, name: string, at: number) {
    const path = join(folder, name);
    const bytes = await readFile(path);
    const place = Math.floor(bytes.length * at);
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    await writeFile(path, bytes);
  }

  test('is accepted unchanged', async () => {
    await using folder = await scratchDir();
    const manifest = await sealIn(folder.path);
    await readBackInThread({ folder: folder.path })(manifest);
  });

  test.each([
    ['data', dataName(1), 'frame'],
    ['index', indexName(1), 'the index differs'],
  ])('is refused if one bit of its %s was altered', async (_, name, problem) => {
    await using folder = await scratchDir();
    const manifest = await sealIn(folder.path);
    await alter(folder.path, name, 0.5);
    const reading = readBackInThread({ folder: folder.path })(manifest);
    await expect(reading).rejects.toThrow(CorruptSegment);
    await expect(reading).rejects.toThrow(problem);
  });

  test('is an error if its files are not there', async () => {
    await using folder = await scratchDir();
    const manifest = await sealIn(folder.path);
    await rm(folder.path, { recursive: true });
    await expect(readBackInThread({ folder: folder.path })(manifest)).rejects.toThrow('missing');
  });
});
