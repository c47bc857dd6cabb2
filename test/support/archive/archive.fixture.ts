import { generateKeyPairSync } from 'node:crypto';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { openArchive } from '#src/features/archive/archive.ts';
import { mergeLookups } from '#src/features/archive/lookups/lookup-files.ts';
import type { SegmentManifest } from '#src/features/archive/manifest.ts';
import { sealSegments, type SealOptions } from '#src/features/archive/segment-writer.ts';
import { createSigner, type Signer } from '#src/features/archive/signature.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import type { StoredRecord } from '#src/kernel/event-store/record-bytes.ts';

export const LOG = 'store-of-a-test';

export function newSigner(): Promise<Signer> {
  const { privateKey } = generateKeyPairSync('ed25519');
  return createSigner(privateKey.export({ format: 'jwk' }));
}

export const signer = await newSigner();

/** For an archive of which the event store says nothing. */
export const noHead = { readHead: async () => null };

const EVENTS = ['requested', 'assigned', 'activated', 'extended', 'stopped'];
/** Sessions that are open at once. */
const OPEN = 7;

/** The prefix of the session of a record: each has five records, `OPEN` apart. */
export function sessionOf(sequence: number): string {
  const round = Math.floor((sequence - 1) / (OPEN * EVENTS.length));
  return `evt.acme.session.ses_${round}_${sequence % OPEN}`;
}

/** A record like those of the event store; every hundredth is of another organization's ledger. */
export function recordAt(sequence: number, filler = 0): RawRecord {
  const event = EVENTS[Math.floor((sequence - 1) / OPEN) % EVENTS.length];
  const isLedger = sequence % 100 === 0;
  return {
    sequence,
    storedAt: new Date(1_780_000_000_000 + sequence * 10).toISOString().replace('Z', '000007Z'),
    subject: isLedger ? 'evt.other.ledger.charged' : `${sessionOf(sequence)}.${event}`,
    headers: [
      ['ce-id', `evt_${sequence}`],
      ['ce-type', `session.${event}`],
    ],
    body: JSON.stringify({ data: { note: noise(sequence, filler) }, state: { sequence } }),
  };
}

/** Letters that do not compress to nothing, the same for the same sequence. */
function noise(sequence: number, length: number): string {
  let [text, state] = ['', sequence];
  while (text.length < length) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += state.toString(36);
  }
  return text;
}

export function recordsFrom(first: number, last: number, filler = 0): RawRecord[] {
  return Array.from({ length: last - first + 1 }, (_, at) => recordAt(first + at, filler));
}

/** The records in batches of a size that fits nothing. */
export async function* inBatches(records: readonly RawRecord[]): AsyncGenerator<RawRecord[]> {
  for (let at = 0; at < records.length; at += 37) yield records.slice(at, at + 37);
}

/** Seals records, merges the lookup files as a run does, and returns the new manifests. */
export async function sealAndMerge(
  batches: AsyncIterable<readonly StoredRecord[]>,
  options: SealOptions,
): Promise<SegmentManifest[]> {
  const sealed = await Array.fromAsync(sealSegments(batches, options));
  const { files } = options;
  await mergeLookups({ ...options, manifests: (await openArchive(files)).trusted() });
  return sealed;
}

/** The same of records in an array, under the key of the tests. */
export function seal(
  files: ArchiveFiles,
  records: readonly RawRecord[],
  options: Partial<SealOptions> = {},
): Promise<SegmentManifest[]> {
  return sealAndMerge(inBatches(records), { files, log: LOG, signer, ...options });
}

export async function collect(batches: AsyncIterable<RawRecord[]>): Promise<RawRecord[]> {
  return (await Array.fromAsync(batches)).flat();
}

/** A copy of all files. */
export async function copyOf(files: ArchiveFiles): Promise<ArchiveFiles> {
  const copy = createMemoryFiles();
  for (const name of await files.list()) await copy.write(name, await files.read(name));
  return copy;
}
