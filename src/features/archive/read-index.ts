import { hash } from 'node:crypto';
import { FileMissing, type ArchiveFiles } from './archive-files.ts';
import { CorruptSegment, indexName, sha256Of, type SegmentManifest } from './manifest.ts';
import { ENTRY_BYTES, FrameTable, SUM_BYTES } from './segment-index.ts';

/** Entries are read and proved in blocks of so many. */
export const BLOCK_ENTRIES = 512;
export const BLOCK_BYTES = BLOCK_ENTRIES * ENTRY_BYTES;

/** Sorted entries in a file whose blocks can be read by themselves: each has its hash here. */
export type ProvenEntries = {
  name: string;
  offset: number;
  entries: number;
  /** SHA-256 of each block, one behind the other. */
  sums: Buffer;
};

/** An index that is the manifest's. */
export type SegmentIndex = { table: FrameTable; entries: ProvenEntries };

/**
 * Reads the whole index of a segment once, since the manifest has one hash for it. What is kept is
 * its table of frames, and a hash of each block of entries.
 * @throws CorruptSegment
 */
export async function readIndex(
  files: ArchiveFiles,
  { number, index_sha256 }: Pick<SegmentManifest, 'number' | 'index_sha256'>,
): Promise<SegmentIndex> {
  const name = indexName(number);
  const bytes = await files.read(name).catch((error: unknown) => {
    if (!(error instanceof FileMissing)) throw error;
    throw new CorruptSegment(number, null, 'the index is missing', { cause: error, file: name });
  });
  if (sha256Of(bytes) !== index_sha256)
    throw new CorruptSegment(number, null, 'the index was altered', { file: name });
  const table = new FrameTable(number, bytes);
  const { entries, entriesAt: offset } = table;
  const sums = blockSums(bytes.subarray(offset, offset + entries * ENTRY_BYTES));
  return { table, entries: { name, offset, entries, sums } };
}

/** The SHA-256 of each block of entries; the last one may be shorter. */
export function blockSums(entries: Buffer): Buffer {
  const sums: Buffer[] = [];
  for (let at = 0; at < entries.length; at += BLOCK_BYTES)
    sums.push(sumOf(entries.subarray(at, at + BLOCK_BYTES)));
  return Buffer.concat(sums);
}

export function sumOf(bytes: Buffer): Buffer {
  return hash('sha256', bytes, 'buffer');
}

/** Whether the bytes of a block, or of several from it on, are those that were written. */
export function areProven(entries: Buffer, sums: Buffer, block: number): boolean {
  const found = blockSums(entries);
  return sums.subarray(block * SUM_BYTES, block * SUM_BYTES + found.length).equals(found);
}
