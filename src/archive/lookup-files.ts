import { FileMissing, type ArchiveFiles } from './archive-files.ts';
import { CorruptSegment, indexName, padded } from './manifest.ts';
import { ENTRY_BYTES, FrameTable, HEADER_BYTES, ROW_BYTES } from './segment-index.ts';

/**
 * Lookup files: the entries of several segments' indexes, merged, so that an aggregate is found
 * without a look at each index. For n segments there is a file for each set bit of n, like the
 * trees of a binary counter: 13 segments have lookups of 8 and 4, and the 13th's own index. They
 * are derived from the indexes and no part of the proof.
 */
export type Range = { first: number; last: number };

/** Entries of a range of segments, sorted: a lookup file, or a part of an index. */
export type EntryTable = Range & { name: string; offset: number; entries: number };

const LOOKUP = /^lookup-(\d{6,})-(\d{6,})$/;
/** Files that are merged at once; each has a stream open. */
const MERGED_MAX = 16;
const CHUNK_ENTRIES = 16 * 1024;

export function lookupName({ first, last }: Range): string {
  return `lookup-${padded(first)}-${padded(last)}`;
}

/** The ranges that an archive of so many segments is divided into, those of one segment too. */
export function rangesOf(segments: number): Range[] {
  const ranges: Range[] = [];
  for (let first = 1; first <= segments;) {
    const last = first + 2 ** Math.floor(Math.log2(segments - first + 1)) - 1;
    ranges.push({ first, last });
    first = last + 1;
  }
  return ranges;
}

/** The largest lookups that exist, in the order of segments; indexes where there are none. */
function coverOf({ first, last }: Range, names: readonly string[]): Range[] {
  const found = lookupsIn(names).filter((range) => range.first >= first && range.last <= last);
  const cover: Range[] = [];
  for (let next = first; next <= last;) {
    const largest = found
      .filter((range) => range.first === next)
      .reduce((best, range) => Math.max(best, range.last), next);
    cover.push({ first: next, last: largest });
    next = largest + 1;
  }
  return cover;
}

function lookupsIn(names: readonly string[]): Range[] {
  return names.flatMap((name) => {
    const [, first, last] = LOOKUP.exec(name) ?? [];
    return last === undefined ? [] : [{ first: Number(first), last: Number(last) }];
  });
}

/** The tables in which all segments' entries are found. @throws FileMissing */
export async function tablesOf(
  files: ArchiveFiles,
  segments: number,
  names: readonly string[],
): Promise<EntryTable[]> {
  return Promise.all(
    coverOf({ first: 1, last: segments }, names).map((range) => tableOf(files, range)),
  );
}

export async function tableOf(files: ArchiveFiles, range: Range): Promise<EntryTable> {
  if (range.first === range.last) {
    const { entriesAt, entries } = await readHeader(files, range.first);
    return { ...range, name: indexName(range.first), offset: entriesAt, entries };
  }
  const name = lookupName(range);
  return { ...range, name, offset: 0, entries: (await files.size(name)) / ENTRY_BYTES };
}

async function readHeader(files: ArchiveFiles, segment: number) {
  try {
    const header = await files.read(indexName(segment), { offset: 0, length: HEADER_BYTES });
    if (header.length < HEADER_BYTES) throw new CorruptSegment(segment, null, 'the index is empty');
    const entriesAt = HEADER_BYTES + header.readUInt32BE(16) * ROW_BYTES;
    return { entriesAt, entries: header.readUInt32BE(20) };
  } catch (error) {
    throw missingIndex(segment, error);
  }
}

/** Reads the table of frames of a segment. @throws CorruptSegment */
export async function readFrameTable(files: ArchiveFiles, segment: number): Promise<FrameTable> {
  const { entriesAt } = await readHeader(files, segment);
  try {
    const range = { offset: 0, length: entriesAt };
    return new FrameTable(segment, await files.read(indexName(segment), range));
  } catch (error) {
    throw missingIndex(segment, error);
  }
}

function missingIndex(segment: number, error: unknown): unknown {
  if (!(error instanceof FileMissing)) return error;
  return new CorruptSegment(segment, null, 'the index is missing', error);
}

/** Writes the lookup files that an archive of so many segments should have; removes the others. */
export async function mergeLookups(files: ArchiveFiles, segments: number): Promise<void> {
  const ranges = rangesOf(segments).filter(({ first, last }) => last > first);
  for (const range of ranges) await ensureLookup(files, range);
  const wanted = ranges.map(lookupName);
  for (const name of await files.list())
    if (LOOKUP.test(name) && !wanted.includes(name)) await files.remove(name);
}

/** Writes all lookup files anew, from the indexes alone. */
export async function rebuildLookups(files: ArchiveFiles, segments: number): Promise<void> {
  for (const name of await files.list()) if (LOOKUP.test(name)) await files.remove(name);
  await mergeLookups(files, segments);
}

async function ensureLookup(files: ArchiveFiles, range: Range): Promise<void> {
  const { first, last } = range;
  const name = lookupName(range);
  if (first === last || (await files.list()).includes(name)) return;
  if (coverOf(range, await files.list()).length > MERGED_MAX) {
    const middle = (first + last - 1) / 2;
    await ensureLookup(files, { first, last: middle });
    await ensureLookup(files, { first: middle + 1, last });
  }
  await files.write(name, mergedEntries(files, coverOf(range, await files.list())));
}

/** The entries of ranges that follow one another, sorted. */
async function* mergedEntries(
  files: ArchiveFiles,
  ranges: readonly Range[],
): AsyncGenerator<Buffer, void, void> {
  const cursors: EntryCursor[] = [];
  try {
    for (const range of ranges) cursors.push(new EntryCursor(files, await tableOf(files, range)));
    for (const cursor of cursors) await cursor.load();
    let chunk = Buffer.allocUnsafe(CHUNK_ENTRIES * ENTRY_BYTES);
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

  constructor(files: ArchiveFiles, table: EntryTable) {
    this.#chunks = readEntries(files, table);
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

/** The entries of a table, in chunks. @throws FileMissing */
export async function* readEntries(
  files: ArchiveFiles,
  { name, offset, entries }: EntryTable,
): AsyncGenerator<Buffer, void, void> {
  for (let at = 0; at < entries; at += CHUNK_ENTRIES) {
    const length = Math.min(CHUNK_ENTRIES, entries - at) * ENTRY_BYTES;
    const chunk = await files.read(name, { offset: offset + at * ENTRY_BYTES, length });
    if (chunk.length !== length) throw new Error(`the file ${name} ends too early`);
    yield chunk;
  }
}
