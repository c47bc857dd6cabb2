import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import { FileMissing, type ArchiveFiles } from '../archive-files.ts';
import { parseRecord } from '#src/kernel/event-store/chain.ts';
import { checkLine, decompressLines } from '../frames.ts';
import {
  CorruptSegment,
  dataName,
  indexName,
  sha256Of,
  type SegmentManifest,
} from '../manifest.ts';
import { ahead, cut } from '../pipeline.ts';
import { sumOf } from '../read-index.ts';
import { salvageLines, walkFrames } from './salvage.ts';
import {
  aggregateOf,
  isSessionEnd,
  FrameTable,
  IndexBuilder,
  nanosOf,
  type Frame,
} from '../segment-index.ts';

/** What is wrong with a segment, and the first line at fault, from 1 on, where one is. */
export type Finding = { segment: number; line: number | null; problem: string };

const FRAMES_AT_ONCE = 4;

/** Verifies the data and the index of a segment against its manifest. */
export async function verifyFiles(
  files: ArchiveFiles,
  manifest: SegmentManifest,
): Promise<Finding[]> {
  const segment = manifest.number;
  const findings: Finding[] = [];
  const table = await readTable(files, manifest).catch((error: unknown) => {
    findings.push(findingOf(segment, 'index', error));
    return null;
  });
  const scan = new SegmentScan(manifest, table);
  try {
    await scan.run(files.stream(dataName(segment)));
  } catch (error) {
    findings.push(findingOf(segment, 'data', error));
    return findings;
  }
  const index = sha256Of(scan.index.build());
  if (index !== manifest.index_sha256)
    findings.push({ segment, line: null, problem: 'the index differs from what the data says' });
  return findings;
}

function findingOf(segment: number, file: string, error: unknown): Finding {
  if (error instanceof FileMissing)
    return { segment, line: null, problem: `the ${file} file is missing` };
  if (!(error instanceof CorruptSegment)) throw error;
  return { segment, line: error.line, problem: error.problem };
}

/** @throws CorruptSegment if the index is not the one of the manifest */
async function readTable(files: ArchiveFiles, manifest: SegmentManifest): Promise<FrameTable> {
  const { number, index_sha256 } = manifest;
  const bytes = await files.read(indexName(number));
  if (sha256Of(bytes) !== index_sha256)
    throw new CorruptSegment(number, null, 'the index was altered');
  return new FrameTable(number, bytes);
}

type Piece = { data: Buffer; row: Frame | null; lines: Buffer | null };

/** Reads all lines of a segment, and stops at the first that is wrong. */
class SegmentScan {
  readonly index: IndexBuilder;
  readonly #manifest: SegmentManifest;
  /** Null if the index cannot be trusted. */
  readonly #table: FrameTable | null;
  #prev: string;
  #records = 0;
  #sessions = 0;
  #bytes = 0;
  #rawBytes = 0;
  #first: RawRecord | null = null;
  #last: RawRecord | null = null;

  constructor(manifest: SegmentManifest, table: FrameTable | null) {
    this.#manifest = manifest;
    this.#table = table;
    this.#prev = manifest.first_prev;
    this.index = new IndexBuilder(manifest.number);
  }

  /** @throws CorruptSegment, FileMissing */
  async run(data: AsyncIterable<Buffer>): Promise<void> {
    const sha256 = createHash('sha256');
    const pieces = this.#table === null ? walkFrames(data) : cut(data, lengths(this.#table));
    let at = 0;
    const decompressed = ahead(pieces, FRAMES_AT_ONCE, async (data): Promise<Piece> => {
      sha256.update(data);
      const row = at < (this.#table?.frames ?? 0) ? (this.#table?.frame(at) ?? null) : null;
      at += 1;
      const lines = decompressLines(data, row?.rawLength ?? null);
      return { data, row, lines: await lines.catch(() => null) };
    });
    for await (const piece of decompressed) await this.#checkPiece(piece);
    this.#requireEnd(sha256.digest('hex'));
  }

  async #checkPiece({ data, row, lines }: Piece): Promise<void> {
    const firstLine = this.#records + 1;
    if (this.#table !== null && row === null) throw this.#fail(null, 'the data has bytes after it');
    const first = this.#checkLines(lines ?? (await salvageLines(data)));
    if (lines === null) {
      // All lines may be there, if the bytes that were altered come after them.
      const line = Math.max(firstLine, Math.min(this.#records + 1, this.#lastLineOf(firstLine)));
      throw this.#fail(line, 'its frame was altered or cut');
    }
    const range = `lines ${firstLine} to ${this.#records}`;
    const sum = sumOf(data);
    if (row !== null && (crc32(data) !== row.crc32 || !row.sha256.equals(sum)))
      throw this.#fail(firstLine, `the compressed bytes of ${range} were altered`);
    if (first === null) throw this.#fail(firstLine, 'its frame has no lines');
    this.index.addFrame({
      offset: this.#bytes,
      length: data.length,
      rawLength: lines.length,
      crc32: crc32(data),
      sha256: sum,
      firstLine,
      firstSequence: first.sequence,
      firstStoredAt: nanosOf(first.storedAt),
    });
    this.#bytes += data.length;
    this.#rawBytes += lines.length;
  }

  /** The last line of the frame that begins with a line; unknown without a table. */
  #lastLineOf(firstLine: number): number {
    const table = this.#table;
    const frame = table?.lastFrame((frame) => frame.firstLine <= firstLine) ?? -1;
    if (table === null || frame === -1) return Infinity;
    return frame + 1 < table.frames ? table.frame(frame + 1).firstLine - 1 : this.#manifest.records;
  }

  /** Returns the first record. @throws CorruptSegment for a line that is wrong */
  #checkLines(lines: Buffer): RawRecord | null {
    let first: RawRecord | null = null;
    for (let start = 0; start < lines.length;) {
      const line = checkLine(lines, start, this.#prev);
      if (line.problem !== null) throw this.#fail(this.#records + 1, line.problem);
      const record = this.#checkRecord(line.record);
      first ??= record;
      this.#prev = line.hash;
      start = line.end;
    }
    return first;
  }

  #checkRecord(bytes: Buffer): RawRecord {
    const line = this.#records + 1;
    let record: RawRecord;
    try {
      record = parseRecord(bytes);
    } catch (error) {
      throw this.#fail(line, 'it is not a record', error);
    }
    const { sequence, subject } = record;
    if (sequence <= (this.#last?.sequence ?? this.#manifest.first_sequence - 1))
      throw this.#fail(line, `its sequence ${sequence} does not follow`);
    this.index.addRecord(aggregateOf(subject));
    if (isSessionEnd(subject)) this.#sessions += 1;
    this.#first ??= record;
    this.#last = record;
    this.#records = line;
    return record;
  }

  /** @throws CorruptSegment if the data is not all that the manifest says */
  #requireEnd(sha256: string): void {
    const manifest = this.#manifest;
    if (this.#records < manifest.records)
      throw this.#fail(this.#records + 1, 'the data ends before this line');
    const found: Partial<SegmentManifest> = {
      first_sequence: this.#first?.sequence ?? 0,
      last_sequence: this.#last?.sequence ?? 0,
      first_stored_at: this.#first?.storedAt ?? '',
      last_stored_at: this.#last?.storedAt ?? '',
      records: this.#records,
      sessions: this.#sessions,
      raw_bytes: this.#rawBytes,
      bytes: this.#bytes,
      tip: this.#prev,
      data_sha256: sha256,
    };
    for (const [name, value] of Object.entries(found))
      if (manifest[name as keyof SegmentManifest] !== value)
        throw this.#fail(null, `the data has another ${name} than the manifest: ${value}`);
  }

  #fail(line: number | null, problem: string, cause?: unknown): CorruptSegment {
    return new CorruptSegment(this.#manifest.number, line, problem, { cause });
  }
}

function* lengths(table: FrameTable): Generator<number, void, void> {
  for (let at = 0; at < table.frames; at += 1) yield table.frame(at).length;
}
