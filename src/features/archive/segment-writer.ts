import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { StoredRecord } from '#src/kernel/event-store/record-bytes.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { compressLines, FRAME_BYTES, FrameBuilder } from './frames.ts';
import {
  dataName,
  genesisHash,
  indexName,
  manifestName,
  sha256Of,
  signManifest,
  type SegmentManifest,
} from './manifest.ts';
import { ahead } from './pipeline.ts';
import { readBack, type ReadBack, type WrittenSegment } from './read-back.ts';
import { sumOf } from './read-index.ts';
import { readManifests, type TrustedManifest } from './read-manifests.ts';
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
  /** The manifests that are there, if they are verified already. */
  known?: readonly TrustedManifest[];
  /** How a segment that was written is read back; default: `readBack` in this thread. */
  readBack?: ReadBack;
};

const RECORDS_MAX = 500_000;
const BYTES_MAX = 1024 ** 3;
/** Until a frame is compressed. */
const NO_SUM = Buffer.alloc(0);
/** Frames that are compressed at once: more than cores, so that none is idle. */
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
 * segment's manifest once the segment was read back and verified. Meanwhile the next one is
 * written. The last segment takes what is left. Records that the archive has already are refused.
 *
 * One process may do this at a time: the caller holds a lease. The manifest is created only if
 * there is none of that number; the data is written before.
 * @throws SegmentTaken, RangeError for a record out of order, CorruptSegment
 */
export async function* sealSegments(
  batches: AsyncIterable<readonly StoredRecord[]>,
  options: SealOptions,
): AsyncGenerator<SegmentManifest, void, void> {
  const { files, recordsMax = RECORDS_MAX, log } = options;
  if (recordsMax < 1 || recordsMax > ENTRIES_MAX)
    throw new RangeError(`recordsMax must be from 1 to ${ENTRIES_MAX}`);
  const source = { names: await files.list(), known: options.known ?? [], log: null };
  const sealed = await readManifests(files, { ...source, head: null, ownSigner: null });
  let last: Before | null = sealed.at(-1) ?? null;
  if (last !== null && last.manifest.log !== log)
    throw new Error(`the archive is of the event store ${last.manifest.log}, not of ${log}`);
  const queue = new RecordQueue(batches, last?.manifest.last_sequence ?? 0);
  let sealing: Promise<SegmentManifest> | null = null;
  try {
    while (await queue.hasMore()) {
      const written = await writeOne(queue, last, options);
      last = written;
      // The segment before was verified meanwhile.
      if (sealing !== null) yield await sealing;
      sealing = sealOne(written, options);
      sealing.catch(() => undefined); // it is awaited above or below
    }
    if (sealing !== null) yield await sealing;
  } finally {
    await Promise.allSettled([sealing]);
    await queue.close();
  }
}

/** A segment, and the hash that its manifest's file has or will have. */
type Before = Pick<TrustedManifest, 'manifest' | 'sha256'>;

type Written = WrittenSegment & Before & { file: Buffer };

/** Writes the next segment's data and index, and signs its manifest. */
async function writeOne(
  queue: RecordQueue,
  before: Before | null,
  options: SealOptions,
): Promise<Written> {
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
    previous: before?.sha256 ?? null,
    sealed_at: now().toISOString(),
  };
  const file = await signManifest(manifest, signer);
  const { lineSums } = draft;
  return { manifest, lineSums, file, sha256: sha256Of(file) };
}

/** Verifies a segment as it is stored, and stores its manifest. */
async function sealOne(
  { file, lineSums, manifest }: Written,
  options: SealOptions,
): Promise<SegmentManifest> {
  const { files } = options;
  await (options.readBack ?? ((one) => readBack(files, one)))({ manifest, lineSums });
  const { number } = manifest;
  if (!(await files.writeNew(manifestName(number), file))) throw new SegmentTaken(number);
  return manifest;
}

/** What is known of a segment while it is written. */
class SegmentDraft {
  readonly index: IndexBuilder;
  /** CRC-32 of the lines of each frame: what is read back is compared with it. */
  readonly lineSums: number[] = [];
  readonly #firstPrev: string;
  readonly #frame: FrameBuilder;
  readonly #sha256 = createHash('sha256');
  #first: StoredRecord | null = null;
  #last: StoredRecord | null = null;
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
        sha256: sumOf(data),
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
      this.lineSums.push(crc32(lines));
      this.#rawBytes += lines.length;
      const row = {
        offset: 0,
        length: 0,
        rawLength: 0,
        crc32: 0,
        sha256: NO_SUM,
        firstLine,
        firstSequence,
        firstStoredAt: nanosOf(storedAt),
      };
      this.index.addFrame(row);
      yield { row, lines };
    }
  }

  #append(record: StoredRecord): void {
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

/** Takes records one by one from batches, and refuses those that are out of order. */
class RecordQueue {
  readonly #batches: AsyncIterator<readonly StoredRecord[]>;
  #last: number;
  #batch: readonly StoredRecord[] = [];
  #next = 0;

  constructor(batches: AsyncIterable<readonly StoredRecord[]>, last: number) {
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

  peek(): StoredRecord {
    return this.#batch[this.#next] as StoredRecord;
  }

  take(): StoredRecord {
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
