import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import {
  headersBytesMax,
  isBytes,
  rawRecordOf,
  writeHeaders,
  type RecordBytes,
  type StoredRecord,
} from '#src/kernel/event-store/record-bytes.ts';
import {
  BEFORE_RECORD,
  BODY,
  lineStart,
  parseRecord,
  recordText,
} from '#src/kernel/event-store/chain.ts';
import { isOneLineJson } from './json-text.ts';

/** A frame ends with the line that reaches this. */
export const FRAME_BYTES = 256 * 1024;
/** A usual record fits behind a frame that is almost full. */
const BUFFER_BYTES = FRAME_BYTES + 32 * 1024;
/** A usual compressed frame fits. */
const COMPRESSED_BYTES = 96 * 1024;
const CHUNK_BYTES_MAX = 1024 * 1024;
/** Far above a frame: NATS takes messages up to 1 MB. */
const RAW_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes that a line has beside its record, at most: its start, its end, and a spare byte. */
const LINE_BYTES = BEFORE_RECORD + 3;
const BODY_BYTES = Buffer.from(BODY);
const HASH_BYTES = 64;
const [LINE_FEED, BRACE] = [0x0a, 0x7d];

const compress = promisify(zstdCompress);
const decompressFrame = promisify(zstdDecompress);
const PARAMETERS = {
  // Level 3 takes twice the time and saves a tenth, measured with 1.5 KB records.
  [constants.ZSTD_c_compressionLevel]: 1,
  [constants.ZSTD_c_checksumFlag]: 1,
};

/** Compresses lines to one zstd frame, outside of the main thread. */
export function compressLines(lines: Buffer): Promise<Buffer> {
  // One step in place of one for each 16 KiB, the default.
  return compress(lines, {
    params: PARAMETERS,
    chunkSize: COMPRESSED_BYTES,
    pledgedSrcSize: lines.length,
  });
}

/**
 * The lines of one frame.
 * @param rawLength their bytes; null if they are not known
 * @throws Error if the frame was altered or cut
 */
export async function decompressLines(frame: Buffer, rawLength: number | null): Promise<Buffer> {
  const chunkSize = Math.min((rawLength ?? FRAME_BYTES) + 64, CHUNK_BYTES_MAX);
  const maxOutputLength = (rawLength ?? RAW_BYTES_MAX) + 1;
  const lines = await decompressFrame(frame, { chunkSize, maxOutputLength });
  if (rawLength !== null && lines.length !== rawLength)
    throw new Error(`${lines.length} bytes in place of ${rawLength}`);
  return lines;
}

/** Collects chained lines until they are enough for a frame. */
export class FrameBuilder {
  /** `hash` of the last line. */
  tip: string;
  #buffer: Buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #end = 0;
  readonly #free: Buffer[] = [];

  constructor(tip: string) {
    this.tip = tip;
  }

  get bytes(): number {
    return this.#end;
  }

  /**
   * Adds a record's line: the text of `chainLine` and a line feed, made with few copies. Both forms
   * of a record give the same line.
   */
  append(record: StoredRecord): void {
    if (!isBytes(record)) this.#appendText(record);
    else if (!this.#appendBytes(record)) this.#appendText(rawRecordOf(record));
  }

  /** False if the bytes are not plain JSON text and headers: nothing was added. */
  #appendBytes({ sequence, storedAt, subject, headers, body }: RecordBytes): boolean {
    if (!PLAIN.test(subject)) return false;
    const start = this.#end;
    const place = `{"sequence":${sequence},"storedAt":"${storedAt}"`;
    const head = `${place},"subject":"${subject}","headers":`;
    const bytes = head.length + headersBytesMax(headers) + BODY.length + body.length;
    this.#reserve(LINE_BYTES + bytes);
    const buffer = this.#buffer;
    const headersAt = start + BEFORE_RECORD + head.length;
    const headersEnd = writeHeaders(headers, buffer, headersAt);
    if (headersEnd === -1 || !isUtf8(body)) return false;
    buffer.write(head, start + BEFORE_RECORD, 'latin1');
    buffer.set(BODY_BYTES, headersEnd);
    const bodyAt = headersEnd + BODY.length;
    const to = bodyAt + body.length;
    buffer.set(body, bodyAt);
    if (!isOneLineJson(buffer, bodyAt, to)) return false;
    this.#close(start, to);
    return true;
  }

  #appendText(record: RawRecord): void {
    const { sequence, storedAt, subject, headers, body } = record;
    const head = headText({ sequence, storedAt, subject, headers });
    // A character has at most 3 bytes, and 6 as an escape in a body that is not JSON.
    this.#reserve(LINE_BYTES + 3 * head.length + BODY.length + 6 * body.length);
    const buffer = this.#buffer;
    const start = this.#end;
    const from = start + BEFORE_RECORD;
    let to = from + buffer.write(head, from) - 1;
    to += buffer.write(BODY, to, 'latin1');
    const bodyFrom = to;
    to += buffer.write(body, to);
    if (body.isWellFormed() && isOneLineJson(buffer, bodyFrom, to)) this.#close(start, to);
    else this.#close(start, from + buffer.write(recordText(record), from) - 1);
  }

  /** Ends a record at `to` and its line, with their hash. */
  #close(start: number, to: number): void {
    const buffer = this.#buffer;
    buffer[to] = BRACE;
    this.tip = seal(buffer, { start, to: to + 1, prev: this.tip });
    buffer[to + 1] = BRACE;
    buffer[to + 2] = LINE_FEED;
    this.#end = to + 3;
  }

  /** The lines so far; the next ones go to another buffer. */
  take(): Buffer {
    const lines = this.#buffer.subarray(0, this.#end);
    this.#buffer = this.#free.pop() ?? Buffer.allocUnsafe(BUFFER_BYTES);
    this.#end = 0;
    return lines;
  }

  /** Gives back lines that were taken and are not read any more: fresh memory costs page faults. */
  recycle(lines: Buffer): void {
    if (lines.buffer.byteLength === BUFFER_BYTES) this.#free.push(Buffer.from(lines.buffer));
  }

  #reserve(bytes: number): void {
    if (this.#end + bytes <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(this.#end + bytes);
    this.#buffer.copy(grown, 0, 0, this.#end);
    this.#buffer = grown;
  }
}

/** Characters that JSON does not escape. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** The text that JSON.stringify makes of a record without its body, in half the time. */
function headText({ sequence, storedAt, subject, headers }: Omit<RawRecord, 'body'>): string {
  let pairs = '';
  for (const [name, value] of headers)
    pairs += `${pairs === '' ? '' : ','}[${quoted(name)},${quoted(value)}]`;
  const start = `{"sequence":${sequence},"storedAt":${quoted(storedAt)}`;
  return `${start},"subject":${quoted(subject)},"headers":[${pairs}]}`;
}

function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

type Span = { start: number; to: number; prev: string };

/** Hashes the record that ends at `to`, writes the start of its line, and returns the hash. */
function seal(buffer: Buffer, { start, to, prev }: Span): string {
  const hash = hashInPlace(buffer, { start, to, prev });
  buffer.write(lineStart(prev, hash), start, 'latin1');
  return hash;
}

/**
 * SHA-256 of `prev` and a line's record. The bytes before the record are overwritten with `prev`,
 * so that one call hashes both.
 */
function hashInPlace(buffer: Buffer, { start, to, prev }: Span): string {
  const from = start + BEFORE_RECORD - HASH_BYTES;
  buffer.write(prev, from, 'latin1');
  return hash('sha256', buffer.subarray(from, to), 'hex');
}

/** What a line has, or what is wrong with it. */
export type CheckedLine =
  | { problem: null; hash: string; record: Buffer; end: number }
  | { problem: string; end: number };

/**
 * Checks the line that begins at `start` against the hash of the line above.
 * @param prev null: the line's own `prev` is taken
 */
export function checkLine(lines: Buffer, start: number, prev: string | null): CheckedLine {
  const feed = lines.indexOf(LINE_FEED, start);
  const end = feed === -1 ? lines.length : feed + 1;
  const problem = (text: string): CheckedLine => ({ problem: text, end });
  if (feed < start + BEFORE_RECORD || lines[feed - 1] !== BRACE)
    return problem('it is not a line of the archive');
  const found = lines.toString('latin1', start, start + BEFORE_RECORD);
  const above = prev ?? found.slice('{"prev":"'.length).slice(0, HASH_BYTES);
  const to = feed - 1;
  const hash = hashInPlace(lines, { start, to, prev: above });
  lines.write(found, start, 'latin1');
  if (found === lineStart(above, hash))
    return { problem: null, hash, record: lines.subarray(start + BEFORE_RECORD, to), end };
  const isMoved = !found.startsWith(`{"prev":"${above}"`);
  return problem(isMoved ? 'it does not follow the line above' : 'it was altered');
}

/** Which records are wanted. `text` stands in each of their lines: other lines are not parsed. */
export type Wanted = { text: string; isWanted: (subject: string) => boolean };

/** The records whose subject begins with the prefix; empty: all. */
export function beginningWith(prefix: string): Wanted {
  const text = `,"subject":${JSON.stringify(prefix).slice(0, -1)}`;
  return { text, isWanted: (subject) => subject.startsWith(prefix) };
}

/**
 * The wanted records, and the places of those that are wrong.
 * @param onProblem called with the line's number in the frame, from 0 on; throws
 */
export function recordsIn(
  lines: Buffer,
  { text, isWanted }: Wanted,
  onProblem: (line: number, problem: string) => never,
): RawRecord[] {
  const records: RawRecord[] = [];
  for (let at = lines.indexOf(text); at !== -1;) {
    const start = lines.lastIndexOf(LINE_FEED, at) + 1;
    const line = checkLine(lines, start, null);
    if (line.problem !== null) return onProblem(lineNumber(lines, start), line.problem);
    const record = parsed(line.record, () => lineNumber(lines, start), onProblem);
    if (isWanted(record.subject)) records.push(record);
    // The text may also stand elsewhere in this line.
    at = lines.indexOf(text, line.end);
  }
  return records;
}

function parsed(
  record: Buffer,
  line: () => number,
  onProblem: (line: number, problem: string) => never,
): RawRecord {
  try {
    return parseRecord(record);
  } catch (error) {
    return onProblem(line(), `it is not a record: ${String(error)}`);
  }
}

/** Lines before a place. */
function lineNumber(lines: Buffer, place: number): number {
  let count = 0;
  for (let at = lines.indexOf(LINE_FEED); at !== -1 && at < place; count += 1)
    at = lines.indexOf(LINE_FEED, at + 1);
  return count;
}
