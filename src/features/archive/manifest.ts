import { hash } from 'node:crypto';
import { ArchiveDamaged } from '#src/kernel/errors.ts';
import { FileMissing, type ArchiveFiles } from './archive-files.ts';
import { parseSigned, signedFile, type Signer } from './signature.ts';

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

/** A file of a segment that is missing, or does not hold what was sealed. */
export class CorruptSegment extends ArchiveDamaged {
  override readonly name = 'CorruptSegment';
  readonly segment: number;
  /** The first line that cannot be read, from 1 on; null if no single line is at fault. */
  readonly line: number | null;
  /** The message without the place. */
  readonly problem: string;
  /** @param file default: the manifest's, or, of a line, that of the data */
  constructor(
    segment: number,
    line: number | null,
    problem: string,
    { cause, file }: { cause?: unknown; file?: string } = {},
  ) {
    const where = line === null ? `segment ${segment}` : `segment ${segment}, line ${line}`;
    const name = file ?? (line === null ? manifestName(segment) : dataName(segment));
    super(name, `${where}: ${problem}`, cause);
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
  return signedFile('manifest', manifest, signer);
}

/**
 * Parses a manifest's file, without a look at the signature.
 * @throws CorruptSegment
 */
export function parseManifest(segment: number, file: Buffer): SealedManifest {
  try {
    const { value, signature } = parseSigned('manifest', file);
    const manifest = value as SegmentManifest;
    if (manifest.format === 'bss-segment-1' && manifest.number === segment)
      return { manifest, file, signature };
  } catch (error) {
    throw new CorruptSegment(segment, null, 'the manifest is not one', { cause: error });
  }
  throw new CorruptSegment(segment, null, 'the manifest is of another segment or format');
}

/** @throws CorruptSegment if it is missing or malformed */
export async function readManifest(files: ArchiveFiles, segment: number): Promise<SealedManifest> {
  try {
    return parseManifest(segment, await files.read(manifestName(segment)));
  } catch (error) {
    if (!(error instanceof FileMissing)) throw error;
    throw new CorruptSegment(segment, null, 'the manifest is missing', { cause: error });
  }
}
