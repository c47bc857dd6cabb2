import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { RawRecord } from '#src/event-store/raw-records.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { checkLine, compressLines, decompressLines, FRAME_BYTES, FrameBuilder } from './frames.ts';
import { mergeLookups } from './lookup-files.ts';
import {
  CorruptSegment,
  dataName,
  genesisHash,
  indexName,
  manifestName,
  readLastManifest,
  sha256Of,
  signManifest,
  type SealedManifest,
  type SegmentManifest,
} from './manifest.ts';
import { ahead, cut } from './pipeline.ts';
import { aggregateOf, isSessionEnd, ENTRIES_MAX, IndexBuilder, nanosOf } from './segment-index.ts';
import type { Signer } from './signature.ts';

export type SealOptions = {
  files: ArchiveFiles;
  /** Id of the event store. */
  log: string;
  signer: Signer;
  /** A segment ends with the record that reaches one of these. */
  recordsMax?: number;
  bytesMax?: number;
  now?: () => Date;
};

const RECORDS_MAX = 500_000;
const BYTES_MAX = 1024 ** 3;
/** Frames that are compressed or decompressed at once: more than cores, so that none is idle. */
const FRAMES_AT_ONCE = 4;

/** Another process sealed this segment meanwhile. */
export class SegmentTaken extends Error {
  override readonly name = 'SegmentTaken';
  constructor(segment: number) {
    super(`segment ${segment} was sealed by another process`);
  }
}

/**
 * Seals records, in the order of their sequences, into segments after the last one, and yields each
 * segment's manifest once the segment was read back and verified. The last segment takes what is
 * left. Records that the archive has already are refused.
 *
 * One process may do this at a time: the caller holds a lease. The manifest is created only if
 * there is none of that number; the data is written before.
 * @throws SegmentTaken, RangeError for a record out of order, CorruptSegment
 */
export async function* sealSegments(
  batches: AsyncIterable<readonly RawRecord[]>,
  options: SealOptions,
): AsyncGenerator<SegmentManifest, void, void> {
  const { files, recordsMax = RECORDS_MAX, log } = options;
  if (recordsMax < 1 || recordsMax > ENTRIES_MAX)
    throw new RangeError(`recordsMax must be from 1 to ${ENTRIES_MAX}`);
  let last = await readLastManifest(files);
  if (last !== null && last.manifest.log !== log)
    throw new Error(`the archive is of the event store ${last.manifest.log}, not of ${log}`);
  // A process that was killed between a manifest and its lookup files left them out.
  if (last !== null) await mergeLookups(files, last.manifest.number);
  const queue = new RecordQueue(batches, last?.manifest.last_sequence ?? 0);
  try {
    while (await queue.hasMore()) {
      last = await sealOne(queue, last, options);
      await mergeLookups(files, last.manifest.number);
      yield last.manifest;
    }
  } finally {
    await queue.close();
  }
}

/** Writes, verifies and seals the next segment. */
async function sealOne(
  queue: RecordQueue,
  before: SealedManifest | null,
  options: SealOptions,
): Promise<SealedManifest> {
  const { files, log, signer, now = () => new Date() } = options;
  const number = (before?.manifest.number ?? 0) + 1;
  const draft = new SegmentDraft(number, before?.manifest.tip ?? genesisHash(log));
  await files.write(dataName(number), draft.write(queue, options));
  const index = draft.index.build();
  await files.write(indexName(number), index);
  const manifest: SegmentManifest = {
    format: 'bss-segment-1',
    log,
    number,
    ...draft.facts(),
    index_sha256: sha256Of(index),
    previous: before === null ? null : sha256Of(before.file),
    sealed_at: now().toISOString(),
  };
  await readBack(files, manifest, draft.index);
  const file = await signManifest(manifest, signer);
  if (!(await files.writeNew(manifestName(number), file))) throw new SegmentTaken(number);
  return { manifest, file, signature: '' };
}

/** What is known of a segment while it is written. */
class SegmentDraft {
  readonly index: IndexBuilder;
  readonly #firstPrev: string;
  readonly #frame: FrameBuilder;
  readonly #sha256 = createHash('sha256');
  #first: RawRecord | null = null;
  #last: RawRecord | null = null;
  #records = 0;
  #sessions = 0;
  #rawBytes = 0;
  #bytes = 0;

  constructor(number: number, prev: string) {
    this.index = new IndexBuilder(number);
    this.#firstPrev = prev;
    this.#frame = new FrameBuilder(prev);
  }

  /** The data file: frames in order, while the next ones are compressed. */
  async *write(queue: RecordQueue, options: SealOptions): AsyncGenerator<Buffer, void, void> {
    const compressed = ahead(this.#frames(queue, options), FRAMES_AT_ONCE, async (frame) => ({
      ...frame,
      data: await compressLines(frame.lines),
    }));
    for await (const { data, lines, ...frame } of compressed) {
      // Set late: the table is in the order of the frames, and the place is known only now.
      Object.assign(frame.row, {
        offset: this.#bytes,
        length: data.length,
        rawLength: lines.length,
        crc32: crc32(data),
      });
      this.#frame.recycle(lines);
      this.#sha256.update(data);
      this.#bytes += data.length;
      yield data;
    }
  }

  async *#frames(queue: RecordQueue, { recordsMax = RECORDS_MAX, bytesMax }: SealOptions) {
    const hasRoom = () =>
      this.#records < recordsMax && this.#rawBytes + this.#frame.bytes < (bytesMax ?? BYTES_MAX);
    while (hasRoom() && (await queue.hasMore())) {
      const firstLine = this.#records + 1;
      const { sequence: firstSequence, storedAt } = queue.peek();
      while (hasRoom() && this.#frame.bytes < FRAME_BYTES && (await queue.hasMore()))
        // The records of a batch, without a promise for each.
        while (queue.isReady && hasRoom() && this.#frame.bytes < FRAME_BYTES)
          this.#append(queue.take());
      const lines = this.#frame.take();
      this.#rawBytes += lines.length;
      const row = {
        offset: 0,
        length: 0,
        rawLength: 0,
        crc32: 0,
        firstLine,
        firstSequence,
        firstStoredAt: nanosOf(storedAt),
      };
      this.index.addFrame(row);
      yield { row, lines };
    }
  }

  #append(record: RawRecord): void {
    this.#frame.append(record);
    this.index.addRecord(aggregateOf(record.subject));
    if (isSessionEnd(record.subject)) this.#sessions += 1;
    this.#first ??= record;
    this.#last = record;
    this.#records += 1;
  }

  facts() {
    const [first, last] = [this.#first, this.#last];
    if (first === null || last === null) throw new RangeError('a segment needs a record');
    return {
      first_sequence: first.sequence,
      last_sequence: last.sequence,
      first_stored_at: first.storedAt,
      last_stored_at: last.storedAt,
      records: this.#records,
      sessions: this.#sessions,
      raw_bytes: this.#rawBytes,
      bytes: this.#bytes,
      data_sha256: this.#sha256.digest('hex'),
      first_prev: this.#firstPrev,
      tip: this.#frame.tip,
    };
  }
}

/**
 * Reads a segment's files as they are stored now, and checks both hashes, each frame and the chain.
 * @throws CorruptSegment
 */
async function readBack(
  files: ArchiveFiles,
  manifest: SegmentManifest,
  { frames }: IndexBuilder,
): Promise<void> {
  const { number } = manifest;
  const fail = (line: number | null, problem: string, cause?: unknown) =>
    new CorruptSegment(number, line, `read back, ${problem}`, cause);
  if (sha256Of(await files.read(indexName(number))) !== manifest.index_sha256)
    throw fail(null, 'the index differs from what was written');
  const sha256 = createHash('sha256');
  let at = 0;
  const pieces = cut(
    files.stream(dataName(number)),
    frames.map(({ length }) => length),
  );
  const decompressed = ahead(pieces, FRAMES_AT_ONCE, async (piece) => {
    const frame = frames[at++];
    sha256.update(piece);
    if (frame === undefined) throw fail(null, 'the data has more bytes than were written');
    return decompressLines(piece, frame.rawLength).catch((error: unknown) => {
      throw fail(frame.firstLine, 'the frame cannot be decompressed', error);
    });
  });
  let [prev, records] = [manifest.first_prev, 0];
  for await (const lines of decompressed)
    for (let start = 0; start < lines.length;) {
      records += 1;
      const line = checkLine(lines, start, prev);
      if (line.problem !== null) throw fail(records, line.problem);
      prev = line.hash;
      start = line.end;
    }
  if (sha256.digest('hex') !== manifest.data_sha256 || prev !== manifest.tip)
    throw fail(null, 'the data differs from what was written');
  if (records !== manifest.records) throw fail(null, `it has ${records} records`);
}

/** Takes records one by one from batches, and refuses those that are out of order. */
class RecordQueue {
  readonly #batches: AsyncIterator<readonly RawRecord[]>;
  #last: number;
  #batch: readonly RawRecord[] = [];
  #next = 0;

  constructor(batches: AsyncIterable<readonly RawRecord[]>, last: number) {
    this.#batches = batches[Symbol.asyncIterator]();
    this.#last = last;
  }

  /** Whether a record can be taken without waiting. */
  get isReady(): boolean {
    return this.#next < this.#batch.length;
  }

  async hasMore(): Promise<boolean> {
    while (!this.isReady) {
      const { done, value } = await this.#batches.next();
      if (done === true) return false;
      this.#batch = value;
      this.#next = 0;
    }
    return true;
  }

  peek(): RawRecord {
    return this.#batch[this.#next] as RawRecord;
  }

  take(): RawRecord {
    const record = this.peek();
    if (record.sequence <= this.#last)
      throw new RangeError(`sequence ${record.sequence} after ${this.#last}`);
    this.#last = record.sequence;
    this.#next += 1;
    return record;
  }

  async close(): Promise<void> {
    await this.#batches.return?.();
  }
}
