import { expect, it } from 'vitest';
import type { ArchiveState } from '#events/archive/archive.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { openArchive, type Archive } from '#src/features/archive/archive.ts';
import type { TrustedManifest } from '#src/features/archive/read-manifests.ts';
import { aggregateOf } from '#src/features/archive/segment-index.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import {
  collect,
  copyOf,
  newSigner,
  recordsFrom,
  seal,
  signer,
} from '#test/support/archive/archive.fixture.ts';

/** A process that reads while the log knows of no end, and goes on when it knows one. */

const everything = { after: 0, upTo: Infinity, organizationId: null };
const records = recordsFrom(1, 30);
const other = await newSigner();
const aggregate = aggregateOf((records[0] as RawRecord).subject);

/** Three segments, and the same with other bodies under another key. */
const real = createMemoryFiles();
await seal(real, records, { recordsMax: 10 });
const foreign = createMemoryFiles();
const altered = records.map((record) => ({ ...record, body: '{"data":{"note":"made up"}}' }));
await seal(foreign, altered, { recordsMax: 10, signer: other });

const trusted = (await openArchive(real)).trusted();
/** What the event store says once the archive ends with that segment. */
function headAt(segment: number): ArchiveState {
  const { manifest, sha256, signer: key } = trusted[segment - 1] as TrustedManifest;
  const lastSequence = manifest.last_sequence;
  return { segment, lastSequence, manifestSha256: sha256, signer: key };
}

/** A reader whose log knows of no end until `head` is set. */
async function openWithout(files: ArchiveFiles, own?: string) {
  const log: { head: ArchiveState | null } = { head: null };
  const readHead = async () => log.head;
  const archive = await openArchive(files, { readHead, ...(own !== undefined && { signer: own }) });
  return { log, archive };
}

async function putBack(files: ArchiveFiles): Promise<void> {
  for (const name of await real.list()) await files.write(name, await real.read(name));
}

async function bothWays(archive: Archive): Promise<RawRecord[][]> {
  const ofOne = await collect(archive.readAggregate(aggregate));
  return [await collect(archive.records.read(everything)), ofOne];
}
const bothOf = (all: readonly RawRecord[]) => [
  all,
  all.filter(({ subject }) => aggregateOf(subject) === aggregate),
];

it.each([2, 3])(
  'wrong manifests of %i segments are forgotten once the log knows the archive’s end',
  async (segments) => {
    const files = createMemoryFiles();
    await seal(files, altered.slice(0, segments * 10), { recordsMax: 10, signer: other });
    const { log, archive } = await openWithout(files);
    expect(await bothWays(archive)).toEqual(bothOf(altered.slice(0, segments * 10)));
    log.head = headAt(3);
    await expect(archive.refresh()).rejects.toThrow('segment');
    await putBack(files);
    await archive.refresh();
    expect(await bothWays(archive)).toEqual(bothOf(records));
  },
);

it('what a head has proved is not read again, although a later manifest is wrong', async () => {
  const files = await copyOf(real);
  const { log, archive } = await openWithout(files);
  log.head = headAt(2);
  await archive.refresh();
  await files.write('000003.json', await foreign.read('000003.json'));
  const read: string[] = [];
  const { read: readFile } = files;
  files.read = async (name, range) => {
    read.push(name);
    return readFile(name, range);
  };
  log.head = headAt(3);
  await expect(archive.refresh()).rejects.toThrow('segment 3');
  expect(new Set(read)).toEqual(new Set(['000003.json']));
});

it('nothing beyond the end is taken, also if it was taken while the log knew no end', async () => {
  const { log, archive } = await openWithout(await copyOf(real));
  expect(archive.segments()).toHaveLength(3);
  log.head = headAt(2);
  await archive.refresh();
  expect(archive.segments()).toHaveLength(2);
  expect(await bothWays(archive)).toEqual(bothOf(records.slice(0, 20)));
});

it('a segment beyond the end that another key signed is refused, with both keys', async () => {
  const files = createMemoryFiles();
  await seal(files, records.slice(0, 10));
  const { log, archive } = await openWithout(files, (await newSigner()).fingerprint);
  const [first] = archive.trusted();
  log.head = { ...headAt(1), manifestSha256: first?.sha256 ?? '' };
  await seal(files, records.slice(10, 20), { signer: other });
  const [found, wanted] = [other.fingerprint, signer.fingerprint];
  await expect(archive.refresh()).rejects.toThrow(
    `segment 2: the manifest is signed by the key ${found}, not by ${wanted}`,
  );
});
