import { parseSubject } from '#events/subjects.ts';
import { CorruptSegment, indexName } from './manifest.ts';

/**
 * The index of a segment: a header, the table of frames, the sorted table of entries that say which
 * frames have records of an aggregate, and the SHA-256 of each frame. Entries have the same form
 * here and in lookup files: hash of the aggregate, segment, frame, big-endian, so that their bytes
 * sort like their values. The manifest has the hash of the whole index.
 */
export const ENTRY_BYTES = 16;
const MAGIC = 'bss-index-1\n';
export const HEADER_BYTES = 24;
export const ROW_BYTES = 40;
export const SUM_BYTES = 32;

/** One frame of the data file. */
export type Frame = {
  /** Place of the frame in the data file. */
  offset: number;
  length: number;
  rawLength: number;
  crc32: number;
  sha256: Buffer;
  /** From 1 on. */
  firstLine: number;
  firstSequence: number;
  /** Nanoseconds since 1970. */
  firstStoredAt: bigint;
};

/** Writes an entry at a place of a buffer. */
export function writeEntry(
  to: Buffer,
  place: number,
  { high, low }: AggregateHash,
  [segment, frame]: readonly [segment: number, frame: number],
): void {
  to.writeUInt32BE(high, place);
  to.writeUInt32BE(low, place + 4);
  to.writeUInt32BE(segment, place + 8);
  to.writeUInt32BE(frame, place + 12);
}

/** 64 bits as two unsigned numbers. */
export type AggregateHash = { high: number; low: number };

/**
 * The hash of an aggregate's subject prefix: two runs of FNV-1a with the finalizer of MurmurHash3.
 * Aggregates that collide cost a read; records are compared by their subjects.
 */
export function aggregateHash(prefix: string): AggregateHash {
  let [high, low] = [0x811c9dc5, 0x9747b28c];
  for (let at = 0; at < prefix.length; at += 1) {
    const unit = prefix.charCodeAt(at);
    high = Math.imul(high ^ unit, 0x01000193);
    low = Math.imul(low ^ unit, 0x5bd1e995) ^ (low >>> 15);
  }
  return { high: mixed(high ^ (low >>> 16)), low: mixed(low ^ high) };
}

/** The finalizer of MurmurHash3. */
export function mixed(value: number): number {
  let mix = value ^ (value >>> 16);
  mix = Math.imul(mix, 0x85ebca6b);
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35);
  return (mix ^ (mix >>> 16)) >>> 0;
}

const SESSION = /^evt\.[^.]+\.(session\..+)$/;

/**
 * The aggregate of a subject, as the index knows it: the subject without the event; of a session
 * `session.<id>`, since operators ask for a session by its id alone, which is unique.
 */
export function aggregateOf(subject: string): string {
  const end = subject.lastIndexOf('.');
  const aggregate = end === -1 ? subject : subject.slice(0, end);
  return SESSION.exec(aggregate)?.[1] ?? aggregate;
}

const ENDS = ['session.stopped', 'session.failed'];

/** Whether the event ends a session. */
export function isSessionEnd(subject: string): boolean {
  // Most subjects are distinguished by their last letters, without a parse.
  if (!subject.endsWith('.stopped') && !subject.endsWith('.failed')) return false;
  return ENDS.includes(parseSubject(subject)?.type ?? '');
}

/** Entries that a segment may have: their numbers fit beside 32 bits of a hash into a double. */
const ENTRIES_BITS = 21;
export const ENTRIES_MAX = 2 ** ENTRIES_BITS;

/** Collects the index of a segment in typed arrays. */
export class IndexBuilder {
  readonly frames: Frame[] = [];
  readonly #segment: number;
  #high = new Uint32Array(1024);
  #low = new Uint32Array(1024);
  #frame = new Uint32Array(1024);
  #count = 0;
  /** The aggregates of the frame at hand. */
  #seen = new Set<string>();

  constructor(segment: number) {
    this.#segment = segment;
  }

  /** Adds a record of the frame that is next to be added. */
  addRecord(aggregate: string): void {
    if (this.#seen.has(aggregate)) return;
    this.#seen.add(aggregate);
    if (this.#count === this.#high.length) this.#grow();
    const { high, low } = aggregateHash(aggregate);
    this.#high[this.#count] = high;
    this.#low[this.#count] = low;
    this.#frame[this.#count] = this.frames.length;
    this.#count += 1;
  }

  addFrame(frame: Frame): void {
    this.frames.push(frame);
    this.#seen.clear();
  }

  /** The bytes of the index file. */
  build(): Buffer {
    const entriesAt = HEADER_BYTES + this.frames.length * ROW_BYTES;
    const sumsAt = entriesAt + this.#count * ENTRY_BYTES;
    const file = Buffer.alloc(sumsAt + this.frames.length * SUM_BYTES);
    file.write(MAGIC);
    file.writeUInt32BE(this.#segment, 12);
    file.writeUInt32BE(this.frames.length, 16);
    file.writeUInt32BE(this.#count, 20);
    for (const [at, frame] of this.frames.entries())
      writeRow(file, HEADER_BYTES + at * ROW_BYTES, frame);
    for (const [at, entry] of this.#sorted().entries()) {
      const hash = { high: this.#high[entry] as number, low: this.#low[entry] as number };
      const place = [this.#segment, this.#frame[entry] as number] as const;
      writeEntry(file, entriesAt + at * ENTRY_BYTES, hash, place);
    }
    for (const [at, { sha256 }] of this.frames.entries())
      sha256.copy(file, sumsAt + at * SUM_BYTES);
    return file;
  }

  /**
   * The entries' numbers in the order of their hashes and frames. A typed array of doubles sorts
   * without a comparator, ten times faster: each is the hash's upper half and the entry's number.
   */
  #sorted(): Uint32Array {
    const keys = new Float64Array(this.#count);
    for (let at = 0; at < this.#count; at += 1)
      keys[at] = (this.#high[at] as number) * ENTRIES_MAX + at;
    keys.sort();
    const order = Uint32Array.from(keys, (key) => key % ENTRIES_MAX);
    // Few have the same upper half, apart from those of one aggregate, which are in order.
    const isBefore = (a: number, b: number) =>
      this.#high[a] === this.#high[b] && (this.#low[a] as number) < (this.#low[b] as number);
    for (let at = 1; at < order.length; at += 1) {
      const entry = order[at] as number;
      let to = at;
      for (; to > 0 && isBefore(entry, order[to - 1] as number); to -= 1)
        order[to] = order[to - 1] as number;
      order[to] = entry;
    }
    return order;
  }

  #grow(): void {
    if (this.#count >= ENTRIES_MAX) throw new RangeError('a segment has too many records');
    [this.#high, this.#low, this.#frame] = [
      grown(this.#high),
      grown(this.#low),
      grown(this.#frame),
    ];
  }
}

function grown(from: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const to = new Uint32Array(from.length * 2);
  to.set(from);
  return to;
}

function writeRow(file: Buffer, place: number, frame: Frame): void {
  file.writeUIntBE(frame.offset, place + 2, 6);
  file.writeUInt32BE(frame.length, place + 8);
  file.writeUInt32BE(frame.rawLength, place + 12);
  file.writeUInt32BE(frame.crc32, place + 16);
  file.writeUInt32BE(frame.firstLine, place + 20);
  file.writeUIntBE(frame.firstSequence, place + 26, 6);
  file.writeBigInt64BE(frame.firstStoredAt, place + 32);
}

/** The table of frames of an index file. */
export class FrameTable {
  readonly frames: number;
  readonly entries: number;
  readonly entriesAt: number;
  readonly #rows: Buffer;
  readonly #sums: Buffer;

  /**
   * @param bytes of the whole file
   * @throws CorruptSegment if it is not the index of the segment
   */
  constructor(segment: number, bytes: Buffer) {
    const isIndex =
      bytes.length >= HEADER_BYTES &&
      bytes.toString('latin1', 0, MAGIC.length) === MAGIC &&
      bytes.readUInt32BE(12) === segment;
    const fail = (problem: string) =>
      new CorruptSegment(segment, null, problem, { file: indexName(segment) });
    if (!isIndex) throw fail('the index is not one');
    this.frames = bytes.readUInt32BE(16);
    this.entries = bytes.readUInt32BE(20);
    this.entriesAt = HEADER_BYTES + this.frames * ROW_BYTES;
    const sumsAt = this.entriesAt + this.entries * ENTRY_BYTES;
    if (bytes.length !== sumsAt + this.frames * SUM_BYTES)
      throw fail('the index has another length');
    // Copies: the entries are not kept in memory.
    this.#rows = Buffer.from(bytes.subarray(0, this.entriesAt));
    this.#sums = Buffer.from(bytes.subarray(sumsAt));
  }

  get bytes(): number {
    return this.#rows.length + this.#sums.length;
  }

  /** The frame of that number, from 0 on. */
  frame(number: number): Frame {
    if (number < 0 || number >= this.frames) throw new RangeError(`no frame ${number}`);
    const place = HEADER_BYTES + number * ROW_BYTES;
    return {
      offset: this.#rows.readUIntBE(place + 2, 6),
      length: this.#rows.readUInt32BE(place + 8),
      rawLength: this.#rows.readUInt32BE(place + 12),
      crc32: this.#rows.readUInt32BE(place + 16),
      sha256: this.#sums.subarray(number * SUM_BYTES, (number + 1) * SUM_BYTES),
      firstLine: this.#rows.readUInt32BE(place + 20),
      firstSequence: this.#rows.readUIntBE(place + 26, 6),
      firstStoredAt: this.#rows.readBigInt64BE(place + 32),
    };
  }

  /** The last frame for which `isBefore` is true, or -1: it is true up to a frame. */
  lastFrame(isBefore: (frame: Frame) => boolean): number {
    return lastWhere(this.frames, (at) => isBefore(this.frame(at)));
  }
}

/** The last of `count` places for which `holds`, or -1: it holds up to a place. */
export function lastWhere(count: number, holds: (at: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;

/**
 * Nanoseconds since 1970 of an ISO 8601 UTC time.
 * @throws RangeError
 */
export function nanosOf(time: string): bigint {
  const [, seconds, fraction = ''] = TIME.exec(time) ?? [];
  if (seconds === undefined) throw new RangeError(`not a time: ${time.slice(0, 80)}`);
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}
