import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openFolderFiles } from '#src/features/archive/archive-files.folder.ts';
import { CorruptSegment, dataName, indexName } from '#src/features/archive/manifest.ts';
import type { WrittenSegment } from '#src/features/archive/read-back.ts';
import { readBackInThread } from '#src/start/archive/read-back-thread.ts';
import { recordsFrom, seal } from '#test/support/archive/archive.fixture.ts';
import { scratchDir } from '#test/support/scratch.ts';

/** The second is read back in a thread of its own. */
describe.each([{ records: 500 }, { records: 21_000 }])('a segment of $records records', (size) => {
  async function sealIn(folder: string): Promise<WrittenSegment> {
    const written: WrittenSegment[] = [];
    const readBack = async (segment: WrittenSegment) => void written.push(segment);
    await seal(openFolderFiles(folder), recordsFrom(1, size.records), { readBack });
    const [segment] = written;
    if (segment === undefined) throw new Error('nothing was sealed');
    return segment;
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
    const segment = await sealIn(folder.path);
    await readBackInThread({ folder: folder.path })(segment);
  });

  test.each([
    ['data', dataName(1), 'frame'],
    ['index', indexName(1), 'the index differs'],
  ])('is refused if one bit of its %s was altered', async (_, name, problem) => {
    await using folder = await scratchDir();
    const segment = await sealIn(folder.path);
    await alter(folder.path, name, 0.5);
    const reading = readBackInThread({ folder: folder.path })(segment);
    await expect(reading).rejects.toThrow(CorruptSegment);
    await expect(reading).rejects.toThrow(problem);
  });

  test('is refused if what was compressed is not what was chained', async () => {
    await using folder = await scratchDir();
    const { manifest, lineSums } = await sealIn(folder.path);
    const changed = { manifest, lineSums: lineSums.map((sum, at) => (at === 0 ? sum ^ 1 : sum)) };
    const reading = readBackInThread({ folder: folder.path })(changed);
    await expect(reading).rejects.toThrow('line 1: read back, the frame has other lines');
    const cut = { manifest, lineSums: lineSums.slice(1) };
    await expect(readBackInThread({ folder: folder.path })(cut)).rejects.toThrow('frames');
  });

  test('is an error if its files are not there', async () => {
    await using folder = await scratchDir();
    const segment = await sealIn(folder.path);
    await rm(folder.path, { recursive: true });
    await expect(readBackInThread({ folder: folder.path })(segment)).rejects.toThrow('missing');
  });
});
