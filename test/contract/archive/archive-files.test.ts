import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openArchive } from '#src/features/archive/archive.ts';
import { FileMissing, type ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { openFolderFiles } from '#src/features/archive/archive-files.folder.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { createS3Files } from '#src/features/archive/archive-files.s3.ts';
import { aggregateOf } from '#src/features/archive/segment-index.ts';
import { verifyArchive } from '#src/features/archive/verify/verify.ts';
import {
  collect,
  LOG,
  recordsFrom,
  seal,
  sessionOf,
  signer,
} from '#test/support/archive/archive.fixture.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { s3Server, startS3 } from '#test/support/servers/real-s3.ts';

type Opened = { files: ArchiveFiles } & AsyncDisposable;
const adapters: { adapter: string; open: () => Promise<Opened> }[] = [
  {
    adapter: 'memory',
    open: async () => ({ files: createMemoryFiles(), async [Symbol.asyncDispose]() {} }),
  },
  { adapter: 'a folder', open: openFolder },
];
const program = s3Server();
if (program !== null) adapters.push({ adapter: 'S3', open: () => openS3(program) });

async function openFolder(): Promise<Opened> {
  const folder = await scratchDir();
  const files = openFolderFiles(join(folder.path, 'archive'));
  return { files, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

async function openS3(path: string): Promise<Opened> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startS3(path));
  const files = stack.use(createS3Files({ ...server.options, prefix: 'of/a/test/' }));
  const parts = stack.move();
  return { files, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

describe.each(adapters)('files of an archive in $adapter', ({ open }) => {
  let opened: Opened;
  let files: ArchiveFiles;
  beforeAll(async () => {
    opened = await open();
    files = opened.files;
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  it('are listed by name', async () => {
    for (const name of ['b.json', 'a.index', 'c']) await files.write(name, Buffer.from(name));
    expect(await files.list()).toEqual(['a.index', 'b.json', 'c']);
    for (const name of await files.list()) await files.remove(name);
    expect(await files.list()).toEqual([]);
  });

  it('are read whole, in ranges and as a stream', async () => {
    const data = Buffer.from(Array.from({ length: 700_000 }, (_, at) => at % 251));
    await files.write('data', data);
    expect(await files.size('data')).toBe(data.length);
    expect((await files.read('data')).equals(data)).toBe(true);
    const streamed = Buffer.concat(await Array.fromAsync(files.stream('data')));
    expect(streamed.equals(data)).toBe(true);
    for (const [offset, length] of [
      [0, 1],
      [1_000, 300_000],
      [699_990, 10],
      [5, 0],
    ] as const) {
      const range = await files.read('data', { offset, length });
      expect(range.equals(data.subarray(offset, offset + length))).toBe(true);
    }
    expect((await files.read('data', { offset: 699_990, length: 50 })).length).toBe(10);
    expect((await files.read('data', { offset: 700_000, length: 50 })).length).toBe(0);
  });

  it('are written from a stream of any size, and replaced', async () => {
    const chunk = Buffer.alloc(1_000_003, 7);
    async function* chunks() {
      for (let count = 0; count < 40; count += 1) yield chunk;
    }
    await files.write('large', chunks());
    expect(await files.size('large')).toBe(40 * chunk.length);
    await files.write('large', Buffer.from('small'));
    expect((await files.read('large')).toString()).toBe('small');
    await files.write('large', (async function* () {})());
    expect(await files.size('large')).toBe(0);
  });

  it('are as they were before, if a write fails', async () => {
    await files.write('steady', Buffer.from('before'));
    async function* failing() {
      yield Buffer.alloc(20_000_000);
      throw new Error('the source failed');
    }
    await expect(files.write('steady', failing())).rejects.toThrow('the source failed');
    await expect(files.write('new', failing())).rejects.toThrow('the source failed');
    expect((await files.read('steady')).toString()).toBe('before');
    expect(await files.list()).not.toContain('new');
  });

  it('are created once, however many try', async () => {
    const tries = Array.from({ length: 8 }, (_, at) =>
      files.writeNew('once', Buffer.from(`writer ${at}`)),
    );
    const outcomes = await Promise.all(tries);
    expect(outcomes.filter((isNew) => isNew).length).toBe(1);
    expect((await files.read('once')).toString()).toBe(`writer ${outcomes.indexOf(true)}`);
    expect(await files.writeNew('once', Buffer.from('later'))).toBe(false);
  });

  it('that are missing fail with an error of their own', async () => {
    const range = { offset: 0, length: 1 };
    await expect(files.read('missing')).rejects.toThrow(FileMissing);
    await expect(files.read('missing', range)).rejects.toThrow(FileMissing);
    await expect(files.size('missing')).rejects.toThrow(FileMissing);
    await expect(Array.fromAsync(files.stream('missing'))).rejects.toThrow(FileMissing);
    await files.remove('missing');
  });

  it('hold an archive that is sealed, read and verified', async () => {
    for (const name of await files.list()) await files.remove(name);
    const records = recordsFrom(1, 900, 1_500);
    await seal(files, records, { recordsMax: 300 });
    const archive = await openArchive(files);
    const range = { after: 0, upTo: 900, organizationId: null };
    expect(await collect(archive.records.read(range))).toEqual(records);
    const prefix = sessionOf(400);
    expect(await collect(archive.readAggregate(aggregateOf(`${prefix}.stopped`)))).toEqual(
      records.filter(({ subject }) => subject.startsWith(`${prefix}.`)),
    );
    const { findings } = await verifyArchive(files, { signer: signer.fingerprint, log: LOG });
    expect(findings).toEqual([]);
  });
});

describe('a folder', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bss-archive-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('hides unfinished files, and removes old ones before its first write', async () => {
    const [old, young] = ['.unfinished-old', '.unfinished-young'];
    for (const name of [old, young]) await writeFile(join(folder, name), 'part');
    await utimes(join(folder, old), 1_000, 1_000);
    const files = openFolderFiles(folder);
    expect(await files.list()).toEqual([]);
    // A reader may have the folder mounted read-only.
    expect(await readdir(folder)).toEqual([old, young]);
    await files.write('a', Buffer.from('a'));
    expect(await readdir(folder)).toEqual([young, 'a']);
  });

  it('is empty until something is written, and a reader does not create it', async () => {
    const files = openFolderFiles(join(folder, 'archive'));
    expect(await files.list()).toEqual([]);
    await expect(files.read('000001.json')).rejects.toThrow(FileMissing);
    expect((await openArchive(files)).segments()).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
    await files.write('a', Buffer.from('a'));
    expect(await files.list()).toEqual(['a']);
  });
});
