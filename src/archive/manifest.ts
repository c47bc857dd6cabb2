import { hash } from 'node:crypto';
import { FileMissing, type ArchiveFiles } from './archive-files.ts';
import type { Signer } from './signature.ts';

/** What a segment is. Its signed file is written last, and seals the segment. */
export type SegmentManifest = {
  format: 'bss-segment-1';
  /** Id of the event store. */
  log: string;
  /** From 1 on, without gaps. */
  number: number;
  first_sequence: number;
  last_sequence: number;
  /** ISO 8601 UTC with nanoseconds, by the event store's clock. */
  first_stored_at: string;
  last_stored_at: string;
  records: number;
  /** Sessions whose end is in this segment. */
  sessions: number;
  /** Bytes of the lines. */
  raw_bytes: number;
  /** Bytes of the data file. */
  bytes: number;
  data_sha256: string;
  index_sha256: string;
  /** SHA-256 of the file of the manifest before; null for the first. */
  previous: string | null;
  /** `prev` of the first line: `tip` of the segment before, for the first `genesisHash`. */
  first_prev: string;
  /** `hash` of the last line. */
  tip: string;
  sealed_at: string;
};

/** A manifest with the bytes of its file. */
export type SealedManifest = { manifest: SegmentManifest; file: Buffer; signature: string };

/** A file of a segment that is missing, or does not hold what it should. */
export class CorruptSegment extends Error {
  override readonly name = 'CorruptSegment';
  readonly segment: number;
  /** The first line that cannot be read, from 1 on; null if no single line is at fault. */
  readonly line: number | null;
  /** The message without the place. */
  readonly problem: string;
  constructor(segment: number, line: number | null, problem: string, cause?: unknown) {
    const where = line === null ? `segment ${segment}` : `segment ${segment}, line ${line}`;
    super(`${where}: ${problem}`, { cause });
    this.segment = segment;
    this.line = line;
    this.problem = problem;
  }
}

export function dataName(segment: number): string {
  return `${padded(segment)}.ndjson.zst`;
}

export function indexName(segment: number): string {
  return `${padded(segment)}.index`;
}

export function manifestName(segment: number): string {
  return `${padded(segment)}.json`;
}

/** The number as it stands in names. */
export function padded(segment: number): string {
  return String(segment).padStart(6, '0');
}

const MANIFEST_NAME = /^(\d{6,})\.json$/;

/** The numbers of the manifests among the names, ascending. */
export function segmentNumbers(names: readonly string[]): number[] {
  const numbers = names.flatMap((name) => {
    const number = Number(MANIFEST_NAME.exec(name)?.[1] ?? 0);
    return number > 0 && manifestName(number) === name ? [number] : [];
  });
  return numbers.toSorted((a, b) => a - b);
}

/** `prev` of the archive's first line. */
export function genesisHash(log: string): string {
  return sha256Of(JSON.stringify(['bss-segment-1', log]));
}

export function sha256Of(data: string | Buffer): string {
  return hash('sha256', data, 'hex');
}

/** The bytes of a manifest's file. */
export async function signManifest(manifest: SegmentManifest, signer: Signer): Promise<Buffer> {
  const text = JSON.stringify(manifest);
  return Buffer.from(`{"manifest":${text},"signature":"${await signer.sign(text)}"}\n`);
}

const FILE = /^\{"manifest":(\{.*\}),"signature":"([\w-]+\.\.[\w-]+)"\}\n$/;

/**
 * Parses a manifest's file, without a look at the signature.
 * @throws CorruptSegment
 */
export function parseManifest(segment: number, file: Buffer): SealedManifest {
  const text = file.toString();
  const [, signed = '', signature = ''] = FILE.exec(text) ?? [];
  // Bytes that are not UTF-8 would decode to another text.
  if (signed === '' || !Buffer.from(text).equals(file))
    throw new CorruptSegment(segment, null, 'the manifest is not one');
  try {
    const manifest = JSON.parse(signed) as SegmentManifest;
    if (JSON.stringify(manifest) !== signed) throw new Error('it is not in its canonical form');
    if (manifest.format === 'bss-segment-1' && manifest.number === segment)
      return { manifest, file, signature };
  } catch (error) {
    throw new CorruptSegment(segment, null, 'the manifest is not one', error);
  }
  throw new CorruptSegment(segment, null, 'the manifest is of another segment or format');
}

/** @throws CorruptSegment if it is missing or malformed */
export async function readManifest(files: ArchiveFiles, segment: number): Promise<SealedManifest> {
  try {
    return parseManifest(segment, await files.read(manifestName(segment)));
  } catch (error) {
    if (!(error instanceof FileMissing)) throw error;
    throw new CorruptSegment(segment, null, 'the manifest is missing', error);
  }
}

/** The newest manifest; null for an empty archive. */
export async function readLastManifest(files: ArchiveFiles): Promise<SealedManifest | null> {
  const last = segmentNumbers(await files.list()).at(-1);
  return last === undefined ? null : readManifest(files, last);
}
