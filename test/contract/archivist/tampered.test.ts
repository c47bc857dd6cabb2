import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { openArchive } from '#src/features/archive/archive.ts';
import { withArchive, withArchivedRecords } from '#src/features/archive/archived-event-store.ts';
import { createHeadReader } from '#src/features/archive/head.ts';
import { CorruptSegment, type SegmentManifest } from '#src/features/archive/manifest.ts';
import { openOnce } from '#src/features/archive/open-once.ts';
import { sealSegments } from '#src/features/archive/segment-writer.ts';
import { runArchive } from '#src/features/archive/archivist/archive-run.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import { copyOf, inBatches, newSigner, seal } from '#test/support/archive/archive.fixture.ts';
import {
  eventsIn,
  everythingBefore,
  later,
  live,
  manyLives,
  recordsIn,
  sessionLife,
} from '#test/support/archive/archived-log.ts';
import { openArchivistTest, type ArchivistTest } from '#test/support/archive/archivist.fixture.ts';

/**
 * Somebody may write to the archive's files, and has no key: the past as the service tells it may
 * not change. Eight runs have sealed a segment each, so there is a lookup file of all of them, and
 * the copies are read as the API does, by processes that have just started.
 */
const RUNS = 8;
let test: ArchivistTest;
/** The files after each run. */
const kept: ArchiveFiles[] = [];
let whole: RawRecord[];
let files: ArchiveFiles;

beforeAll(async () => {
  test = await openArchivistTest();
  const { store, dependencies } = test;
  await live(store.eventStore, manyLives());
  for (let run = 1; run <= RUNS; run += 1) {
    await live(store.eventStore, sessionLife('acme', `ended_${run}`, true));
    await test.untilFolded();
    const signal = new AbortController().signal;
    expect((await runArchive(dependencies, everythingBefore(later()), signal)).segments).toBe(1);
    kept.push(await copyOf(store.files));
  }
  whole = await recordsIn(store.records, 0, await store.log.lastSequence());
});
afterAll(() => test?.[Symbol.asyncDispose]());
beforeEach(async () => {
  files = await copyOf(kept.at(-1) as ArchiveFiles);
});

const session = (id: string) => ({ kind: 'session', organizationId: 'acme', id }) as const;
const name = (segment: number, ending: string) => `00000${segment}.${ending}`;
const data = (segment: number) => name(segment, 'ndjson.zst');
const index = (segment: number) => name(segment, 'index');
const manifest = (segment: number) => name(segment, 'json');
const LOOKUP = 'lookup-000001-000008';

/** Every way in which a process reads the archive, on the files as they are now. */
function reads() {
  const { log, logRecords } = test.store;
  const faults: string[] = [];
  const open = openOnce(async () => files, {
    readHead: createHeadReader(log),
    onFault: ({ file }) => faults.push(file),
  });
  const eventStore = withArchive(log, open);
  const records = withArchivedRecords(logRecords, log, open);
  const ways = {
    history: async (id: string) => Array.fromAsync(eventStore.history(session(id))),
    last: async (id: string) => eventStore.readLast(session(id)),
    events: async () => eventsIn(eventStore),
    records: async () => recordsIn(records, 0, await log.lastSequence()),
  };
  return { ...ways, faults };
}

/** All that is answered is what happened: the read of what was changed is refused, by name. */
async function expectRefused(file: string): Promise<void> {
  const read = reads();
  await expect(read.records()).rejects.toMatchObject({ name: 'CorruptSegment', file });
  await expect(read.events()).rejects.toThrow(CorruptSegment);
  expect(new Set(read.faults)).toEqual(new Set([file]));
}

it('untouched files are read', async () => {
  const read = reads();
  expect(await read.records()).toEqual(whole);
  expect((await read.history('ses_1')).at(-1)?.type).toBe('session.stopped');
  expect((await read.last(`ended_${RUNS - 1}`))?.type).toBe('session.stopped');
  expect(read.faults).toEqual([]);
});

/** What somebody without the key can make of records: an archive of another key. */
async function forged(change: (record: RawRecord) => RawRecord): Promise<ArchiveFiles> {
  const made = createMemoryFiles();
  const signer = await newSigner();
  for (const { first_sequence: first, last_sequence: last } of (
    await openArchive(kept.at(-1) as ArchiveFiles)
  ).segments()) {
    const records = whole.filter(({ sequence }) => sequence >= first && sequence <= last);
    await seal(made, records.map(change), { log: (await test.store.log.info()).id, signer });
  }
  return made;
}

/** The reason of a session's end is another one. */
function rewritten(record: RawRecord): RawRecord {
  return { ...record, body: record.body.replaceAll('"user_1"', '"somebody"') };
}

async function copy(from: ArchiveFiles, fromName: string, toName = fromName): Promise<void> {
  await files.write(toName, await from.read(fromName));
}

describe('a manifest', () => {
  it('that was changed', async () => {
    const text = (await files.read(manifest(3))).toString();
    await files.write(manifest(3), Buffer.from(text.replace(/"records":(\d)/, '"records":9$1')));
    await expectRefused(manifest(3));
  });

  it('that another key signed', async () => {
    const signer = await newSigner();
    const file = JSON.parse((await files.read(manifest(8))).toString()) as {
      manifest: SegmentManifest;
    };
    const value = JSON.stringify(file.manifest);
    const signed = `{"manifest":${value},"signature":"${await signer.sign(value)}"}\n`;
    await files.write(manifest(8), Buffer.from(signed));
    await expectRefused(manifest(8));
  });

  it('of an older segment in its place, or of none', async () => {
    await copy(files, manifest(2), manifest(5));
    await expectRefused(manifest(5));
    await files.remove(manifest(5));
    await expectRefused(manifest(5));
  });

  it('of each segment, of an archive that another key sealed', async () => {
    const other = await forged(rewritten);
    for (const one of await other.list()) await copy(other, one);
    await expectRefused(manifest(8));
    // The newest one alone is the real one.
    await copy(kept.at(-1) as ArchiveFiles, manifest(8));
    await expectRefused(manifest(8));
  });
});

describe('the data', () => {
  it('with a byte changed, and its check sum in the index made to fit', async () => {
    const other = await forged(rewritten);
    await copy(other, data(1));
    await expectRefused(data(1));
    await copy(other, index(1));
    await expectRefused(index(1));
    const { history, last } = reads();
    await expect(history('ses_1')).rejects.toThrow(CorruptSegment);
    await expect(last('ses_1')).rejects.toThrow(CorruptSegment);
  });

  it('of another segment', async () => {
    await copy(files, data(4), data(6));
    await expectRefused(data(6));
  });

  it('that is cut, empty or missing', async () => {
    const bytes = await files.read(data(7));
    for (const length of [bytes.length - 1, 0]) {
      await files.write(data(7), bytes.subarray(0, length));
      await expectRefused(data(7));
    }
    await files.remove(data(7));
    await expectRefused(data(7));
  });
});

describe('an index', () => {
  it('of another segment, or one that is missing', async () => {
    await copy(files, index(4), index(5));
    await expectRefused(index(5));
    await files.remove(index(5));
    await expectRefused(index(5));
  });

  it('and a lookup file without a session, which would seem never to have been', async () => {
    for (const one of [LOOKUP, `${LOOKUP}.sums`]) expect(await files.list()).toContain(one);
    const entries = await files.read(LOOKUP);
    await files.write(LOOKUP, Buffer.alloc(entries.length, 0xff));
    const { last, history, faults } = reads();
    await expect(last('ses_1')).rejects.toMatchObject({ file: LOOKUP });
    await expect(history('ses_1')).rejects.toMatchObject({ file: LOOKUP });
    await expect(last('ses_9')).rejects.toThrow(CorruptSegment);
    expect(faults).toEqual([LOOKUP, LOOKUP, LOOKUP]);
  });

  it('and hashes of a lookup file that no key of the archive signed', async () => {
    const other = await forged((record) => ({ ...record, subject: 'evt.other.session.x.stopped' }));
    for (const one of [LOOKUP, `${LOOKUP}.sums`]) await copy(other, one);
    await expect(reads().last('ses_1')).rejects.toMatchObject({ file: `${LOOKUP}.sums` });
    // Without them the lookup is none, and each index is searched.
    await files.remove(`${LOOKUP}.sums`);
    expect((await reads().last('ses_1'))?.type).toBe('session.stopped');
  });
});

describe('an older archive', () => {
  it('in place of the newest', async () => {
    files = await copyOf(kept[4] as ArchiveFiles);
    await expectRefused(manifest(6));
    const run = runArchive(
      { ...test.dependencies, files },
      everythingBefore(later()),
      new AbortController().signal,
    );
    await expect(run).rejects.toThrow('the event store knows of 8 segments');
  });

  it('that went on otherwise, under the same key', async () => {
    files = await copyOf(kept[6] as ArchiveFiles);
    const { signer } = test.dependencies;
    const { last_sequence: after } = (await openArchive(files))
      .segments()
      .at(-1) as SegmentManifest;
    const records = whole.filter(({ sequence }) => sequence > after).map(rewritten);
    const options = { files, log: (await test.store.log.info()).id, signer };
    await Array.fromAsync(sealSegments(inBatches(records.slice(0, 12)), options));
    await expectRefused(manifest(8));
  });

  it('and segments beyond what the event store knows are not taken for its past', async () => {
    const { signer } = test.dependencies;
    const { id, lastSequence } = await test.store.log.info();
    const record = { ...(whole.at(-1) as RawRecord), sequence: lastSequence + 1_000 };
    await Array.fromAsync(sealSegments(inBatches([record]), { files, log: id, signer }));
    const read = reads();
    expect(await read.records()).toEqual(whole);
  });
});

it('what was verified once is not read again: a process that runs is not fooled later', async () => {
  const read = reads();
  expect(await read.records()).toEqual(whole);
  for (const one of await files.list()) if (one.endsWith('.json')) await files.remove(one);
  expect(await read.records()).toEqual(whole);
});
