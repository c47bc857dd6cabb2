import type { ArchiveFiles } from '../archive-files.ts';
import {
  coverOf,
  isLookupName,
  lookupName,
  rangesOf,
  sumsName,
  type Range,
} from './lookup-names.ts';
import { readLookupSums, writeLookupSums } from './lookup-sums.ts';
import { CorruptSegment } from '../manifest.ts';
import { areProven, BLOCK_BYTES, blockSums, readIndex, type ProvenEntries } from '../read-index.ts';
import type { TrustedManifest } from '../read-manifests.ts';
import { ENTRY_BYTES } from '../segment-index.ts';
import type { Signer } from '../signature.ts';

/** Files that are merged at once; each has a stream open. */
const MERGED_MAX = 16;
const CHUNK_BYTES = 32 * BLOCK_BYTES;

/** The tables in which all segments' entries are found: lookup files, and indexes. */
export function tablesOf(segments: number, names: readonly string[]): Range[] {
  return coverOf({ first: 1, last: segments }, names);
}

/**
 * The entries of a range, with hashes that the archive's manifests or keys prove.
 * @throws CorruptSegment, FileMissing
 */
export async function openEntries(
  files: ArchiveFiles,
  range: Range,
  manifests: readonly TrustedManifest[],
): Promise<ProvenEntries> {
  const { manifest } = manifests[range.first - 1] as TrustedManifest;
  if (range.first === range.last) return (await readIndex(files, manifest)).entries;
  const isTrusted = (key: string) => manifests.some(({ signer }) => signer === key);
  return readLookupSums(files, range, { log: manifest.log, isTrusted });
}

/** An archive whose lookup files are written. */
export type Merging = {
  files: ArchiveFiles;
  /** Of all segments. */
  manifests: readonly TrustedManifest[];
  signer: Signer;
};

/**
 * Writes the lookup files that the archive should have; removes the others. Readers that know of an
 * earlier end search with those: the end is recorded before.
 */
export async function mergeLookups(merging: Merging): Promise<void> {
  const { files, manifests } = merging;
  const ranges = rangesOf(manifests.length).filter(({ first, last }) => last > first);
  for (const range of ranges) await ensureLookup(merging, range);
  const wanted = ranges.flatMap((range) => [lookupName(range), sumsName(range)]);
  for (const name of await files.list())
    if (isLookupName(name) && !wanted.includes(name)) await files.remove(name);
}

async function ensureLookup(merging: Merging, range: Range): Promise<void> {
  const { files, manifests, signer } = merging;
  const { first, last } = range;
  const names = await files.list();
  if (first === last || coverOf(range, names).length === 1) return;
  if (coverOf(range, names).length > MERGED_MAX) {
    const middle = (first + last - 1) / 2;
    await ensureLookup(merging, { first, last: middle });
    await ensureLookup(merging, { first: middle + 1, last });
  }
  const written = { entries: 0, sums: [] as Buffer[] };
  const cover = coverOf(range, await files.list());
  await files.write(lookupName(range), summed(mergedEntries(merging, cover), written));
  const { log } = (manifests[0] as TrustedManifest).manifest;
  const { entries, sums } = written;
  await writeLookupSums(files, range, { log, signer, entries, sums: Buffer.concat(sums) });
}

/** Passes entries through, counts them, and takes the hash of each block. */
async function* summed(
  chunks: AsyncIterable<Buffer>,
  written: { entries: number; sums: Buffer[] },
): AsyncGenerator<Buffer, void, void> {
  for await (const chunk of chunks) {
    written.sums.push(blockSums(chunk));
    written.entries += chunk.length / ENTRY_BYTES;
    yield chunk;
  }
}

/** The entries of ranges that follow one another, sorted. */
async function* mergedEntries(
  { files, manifests }: Merging,
  ranges: readonly Range[],
): AsyncGenerator<Buffer, void, void> {
  const cursors: EntryCursor[] = [];
  try {
    for (const range of ranges)
      cursors.push(new EntryCursor(files, await openEntries(files, range, manifests)));
    for (const cursor of cursors) await cursor.load();
    let chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let end = 0;
    for (let least = leastOf(cursors); least !== null; least = leastOf(cursors)) {
      least.copyTo(chunk, end);
      end += ENTRY_BYTES;
      if (!least.next()) await least.load();
      if (end < chunk.length) continue;
      yield chunk;
      chunk = Buffer.allocUnsafe(chunk.length);
      end = 0;
    }
    if (end > 0) yield chunk.subarray(0, end);
  } finally {
    for (const cursor of cursors) await cursor.close();
  }
}

/** The cursor with the least hash; of equal ones the first: its segments come before. */
function leastOf(cursors: readonly EntryCursor[]): EntryCursor | null {
  let least: EntryCursor | null = null;
  for (const cursor of cursors) {
    if (cursor.isDone) continue;
    const isLess =
      least === null ||
      cursor.high < least.high ||
      (cursor.high === least.high && cursor.low < least.low);
    if (isLess) least = cursor;
  }
  return least;
}

/** Reads the entries of a table one by one. */
class EntryCursor {
  high = 0;
  low = 0;
  isDone = false;
  readonly #chunks: AsyncGenerator<Buffer, void, void>;
  #chunk: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(files: ArchiveFiles, entries: ProvenEntries) {
    this.#chunks = readEntries(files, entries);
  }

  /** Goes to the first entry of the next chunk. */
  async load(): Promise<void> {
    const { done, value } = await this.#chunks.next();
    this.isDone = done === true;
    if (done === true) return;
    this.#chunk = value;
    this.#at = -ENTRY_BYTES;
    this.next();
  }

  /** Goes to the next entry; false at the end of the chunk. */
  next(): boolean {
    this.#at += ENTRY_BYTES;
    if (this.#at >= this.#chunk.length) return false;
    this.high = this.#chunk.readUInt32BE(this.#at);
    this.low = this.#chunk.readUInt32BE(this.#at + 4);
    return true;
  }

  copyTo(chunk: Buffer, place: number): void {
    this.#chunk.copy(chunk, place, this.#at, this.#at + ENTRY_BYTES);
  }

  async close(): Promise<void> {
    await this.#chunks.return();
  }
}

/**
 * The entries of a table, in chunks.
 * @throws CorruptSegment, FileMissing
 */
export async function* readEntries(
  files: ArchiveFiles,
  table: ProvenEntries,
): AsyncGenerator<Buffer, void, void> {
  const blocks = CHUNK_BYTES / BLOCK_BYTES;
  for (let first = 0; first * BLOCK_BYTES < table.entries * ENTRY_BYTES; first += blocks)
    yield await readBlocks(files, table, { first, count: blocks });
}

/**
 * Blocks of entries, fewer at the end of the table.
 * @throws CorruptSegment for blocks that are not those that were written; FileMissing
 */
export async function readBlocks(
  files: ArchiveFiles,
  { name, offset, entries, sums }: ProvenEntries,
  { first, count }: { first: number; count: number },
): Promise<Buffer> {
  const start = first * BLOCK_BYTES;
  const length = Math.min(count * BLOCK_BYTES, entries * ENTRY_BYTES - start);
  const blocks = await files.read(name, { offset: offset + start, length });
  if (blocks.length === length && areProven(blocks, sums, first)) return blocks;
  const segment = Number(/\d+/.exec(name)?.[0] ?? 0);
  const problem = `${name} has entries that the archivist did not write`;
  throw new CorruptSegment(segment, null, problem, { file: name });
}
