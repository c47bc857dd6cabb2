import { filtersFor, matchesAnyFilter } from '#events/subjects.ts';
import type { RawRecord, RawRecords, RecordRange } from '#src/kernel/event-store/raw-records.ts';
import { FileMissing, type ArchiveFiles } from './archive-files.ts';
import { ByteCache } from './byte-cache.ts';
import type { ReadHead } from './head.ts';
import { openEntries, tablesOf } from './lookups/lookup-files.ts';
import type { Range } from './lookups/lookup-names.ts';
import { LookupSearch, type Place } from './lookups/lookup-search.ts';
import { beginningWith, decompressLines, recordsIn, type Wanted } from './frames.ts';
import { readIndex, sumOf, type ProvenEntries, type SegmentIndex } from './read-index.ts';
import { readManifests, type TrustedManifest } from './read-manifests.ts';
import { ahead } from './pipeline.ts';
import { CorruptSegment, dataName, type SegmentManifest } from './manifest.ts';
import { aggregateOf, lastWhere, nanosOf, type FrameTable } from './segment-index.ts';

/**
 * Reads sealed segments, and nothing that is not what was sealed: the manifests are verified when
 * they are taken in, and what is read is compared with hashes that they prove. What it holds in
 * memory is a manifest for each segment, and a cache.
 */
export type Archive = {
  /** Takes in segments that were sealed since. */
  refresh(): Promise<void>;
  /** The manifests, in order. */
  segments(): readonly SegmentManifest[];
  /** The same, with what was found out about them. */
  trusted(): readonly TrustedManifest[];
  /** The last archived sequence, 0 for an empty archive. */
  endSequence(): number;
  /** The time of the last archived record. */
  endTime(): string | null;
  /** Ends with the archive, where `upTo` is above it. */
  records: RawRecords;
  /**
   * The records of one aggregate by its name in the index (`session.<id>`, `fleet.workload.<id>`;
   * see `aggregateOf`), oldest first, above `after`, up to and including `upTo`.
   * @throws CorruptSegment
   */
  readAggregate(aggregate: string, range?: AggregateRange): AsyncIterable<RawRecord[]>;
  /** The last record of an aggregate up to and including a sequence. @throws CorruptSegment */
  lastUpTo(aggregate: string, sequence: number): Promise<RawRecord | null>;
  /**
   * The last archived sequence that was stored before a time, 0 if there is none. Null if all of
   * the archive was: a later one may be in the event store. Times are taken to ascend.
   */
  sequenceBefore(time: string): Promise<number | null>;
};

export type AggregateRange = { after?: number; upTo?: number };

export type ArchiveOptions = {
  /** Id of the event store that the archive must be of. */
  log?: string;
  /**
   * What the event store says of the archive's end. Without it, or where it says nothing, what
   * follows the first segment in one signed chain is taken for the archive.
   */
  readHead?: ReadHead;
  /** Fingerprint of the sealing process's key; without it, nothing beyond the head is read. */
  signer?: string;
  /** Called for each read that was refused. */
  onFault?: (fault: CorruptSegment) => void;
  /** Bound of decompressed frames, tables of frames and blocks of lookup files. */
  cacheBytesMax?: number;
};

const CACHE_BYTES_MAX = 64 * 1024 * 1024;
/** Frames that are read ahead; each is decompressed outside of the main thread. */
const FRAMES_AHEAD = 4;
/** Each merge removes the lookup files that it replaces; several may end during one search. */
const SEARCHES_MAX = 5;

/** @throws CorruptSegment for a manifest that is missing, or is not what was sealed */
export async function openArchive(
  files: ArchiveFiles,
  options: ArchiveOptions = {},
): Promise<Archive> {
  const archive = new ArchiveReader(files, options);
  const told = (error: unknown): never => {
    if (error instanceof CorruptSegment) options.onFault?.(error);
    throw error;
  };
  async function* telling<Value>(values: AsyncIterable<Value>) {
    try {
      yield* values;
    } catch (error) {
      told(error);
    }
  }
  const refresh = () => archive.refresh().catch(told);
  await refresh();
  return {
    refresh,
    segments: () => archive.manifests,
    trusted: () => archive.trusted,
    endSequence: () => archive.manifests.at(-1)?.last_sequence ?? 0,
    endTime: () => archive.manifests.at(-1)?.last_stored_at ?? null,
    records: { read: (range) => telling(archive.read(range)) },
    readAggregate: (aggregate, range) => telling(archive.readAggregate(aggregate, range)),
    lastUpTo: (aggregate, sequence) => archive.lastUpTo(aggregate, sequence).catch(told),
    sequenceBefore: (time) => archive.sequenceBefore(time).catch(told),
  };
}

class ArchiveReader {
  manifests: readonly SegmentManifest[] = [];
  trusted: readonly TrustedManifest[] = [];
  readonly #files: ArchiveFiles;
  readonly #options: ArchiveOptions;
  #cache: ByteCache;
  #search: LookupSearch;
  /** The manifests up to the last head: what was taken in without one is read again. */
  #proven: readonly TrustedManifest[] = [];
  #tables: Range[] = [];

  constructor(files: ArchiveFiles, options: ArchiveOptions) {
    this.#files = files;
    this.#options = options;
    this.#cache = new ByteCache(options.cacheBytesMax ?? CACHE_BYTES_MAX);
    this.#search = new LookupSearch(files, this.#cache);
  }

  async refresh(): Promise<void> {
    const { readHead, log = null, signer: ownSigner = null } = this.#options;
    // Before the names: the segment that it names is among them.
    const head = readHead === undefined ? null : await readHead();
    const names = await this.#files.list();
    const source = { names, known: this.#proven, log, head, ownSigner };
    const trusted = await readManifests(this.#files, source);
    if (head !== null) this.#proven = trusted.slice(0, head.segment);
    // What was read by other manifests is not what these prove.
    if (this.trusted.some(({ sha256 }, at) => sha256 !== trusted[at]?.sha256)) {
      this.#cache = new ByteCache(this.#options.cacheBytesMax ?? CACHE_BYTES_MAX);
      this.#search = new LookupSearch(this.#files, this.#cache);
    }
    this.trusted = trusted;
    this.manifests = this.trusted.map(({ manifest }) => manifest);
    this.#tables = tablesOf(this.manifests.length, names);
  }

  async *read(range: RecordRange) {
    const { after, upTo } = range;
    const filter = filterOf(range);
    const wanted = beginningWith(filter.slice(0, filter.search(/[*>]|$/)));
    const frames = ahead(this.#placesFrom(after, upTo), FRAMES_AHEAD, (place) =>
      this.#records(place, wanted),
    );
    for await (const records of frames) {
      const inRange = records.filter(
        ({ sequence, subject }) =>
          sequence > after && sequence <= upTo && matchesAnyFilter([filter], subject),
      );
      if (inRange.length > 0) yield inRange;
    }
  }

  async *readAggregate(aggregate: string, { after = 0, upTo = Infinity }: AggregateRange = {}) {
    const places = this.#aggregatePlaces(aggregate, { after, upTo });
    const frames = ahead(places, FRAMES_AHEAD, (place) => this.#ofAggregate(place, aggregate));
    for await (const records of frames) {
      const wanted = records.filter(({ sequence }) => sequence > after && sequence <= upTo);
      if (wanted.length > 0) yield wanted;
    }
  }

  async lastUpTo(aggregate: string, sequence: number): Promise<RawRecord | null> {
    const from = await this.#placeOf(sequence);
    if (from === null) return null;
    const find = async () => {
      for (const table of this.#tables.toReversed()) {
        if (table.first > from.segment) continue;
        const entries = await this.#entries(table);
        for await (const place of this.#search.descending(entries, aggregate, from)) {
          const records = await this.#ofAggregate(place, aggregate);
          const last = records.findLast((record) => record.sequence <= sequence);
          if (last !== undefined) return last;
        }
      }
      return null;
    };
    for (let tries = 1; ; tries += 1)
      try {
        return await find();
      } catch (error) {
        await this.#refreshAfter(error, tries);
      }
  }

  async sequenceBefore(time: string): Promise<number | null> {
    const wanted = nanosOf(time);
    const segments = this.manifests;
    const at = lastWhere(
      segments.length,
      (at) => nanosOf((segments[at] as SegmentManifest).last_stored_at) < wanted,
    );
    const manifest = segments[at + 1];
    if (manifest === undefined) return null;
    const segment = manifest.number;
    const table = await this.#frameTable(segment);
    const frame = table.lastFrame(({ firstStoredAt }) => firstStoredAt < wanted);
    if (frame === -1) return segments[at]?.last_sequence ?? 0;
    const records = await this.#records({ segment, frame }, beginningWith(''));
    const last = records.findLast(({ storedAt }) => nanosOf(storedAt) < wanted);
    return last?.sequence ?? 0;
  }

  /** The frames that hold a range of sequences. */
  async *#placesFrom(after: number, upTo: number): AsyncGenerator<Place, void, void> {
    const next = lastWhere(
      this.manifests.length,
      (at) => (this.manifests[at] as SegmentManifest).last_sequence <= after,
    );
    for (const { number: segment, first_sequence } of this.manifests.slice(next + 1)) {
      if (first_sequence > upTo) return;
      const table = await this.#frameTable(segment);
      const first = table.lastFrame(({ firstSequence }) => firstSequence <= after + 1);
      for (let frame = Math.max(first, 0); frame < table.frames; frame += 1) {
        if (table.frame(frame).firstSequence > upTo) return;
        yield { segment, frame };
      }
    }
  }

  /** The last frame that begins up to a sequence; null if there is none. */
  async #placeOf(sequence: number): Promise<Place | null> {
    const at = lastWhere(
      this.manifests.length,
      (at) => (this.manifests[at] as SegmentManifest).first_sequence <= sequence,
    );
    const manifest = this.manifests[at];
    if (manifest === undefined) return null;
    const table = await this.#frameTable(manifest.number);
    const frame = table.lastFrame(({ firstSequence }) => firstSequence <= sequence);
    return { segment: manifest.number, frame };
  }

  /** The frames that have records of an aggregate, and perhaps some that have none. */
  async *#aggregatePlaces(
    aggregate: string,
    { after, upTo }: Required<AggregateRange>,
  ): AsyncGenerator<Place, void, void> {
    let next = (await this.#placeOf(after + 1)) ?? { segment: 1, frame: 0 };
    const end = await this.#placeOf(upTo);
    if (end === null) return;
    for (let tries = 1; ; tries += 1)
      try {
        for (const table of this.#tables) {
          if (table.last < next.segment) continue;
          if (table.first > end.segment) return;
          const entries = await this.#entries(table);
          for await (const place of this.#search.ascending(entries, aggregate, next)) {
            if (isAfter(place, end)) return;
            yield place;
            next = { segment: place.segment, frame: place.frame + 1 };
          }
        }
        return;
      } catch (error) {
        await this.#refreshAfter(error, tries);
      }
  }

  /** Takes in the lookup files that replaced a missing one. @throws the error if it is another */
  async #refreshAfter(error: unknown, tries: number): Promise<void> {
    if (!(error instanceof FileMissing) || tries === SEARCHES_MAX) throw error;
    await this.refresh();
  }

  async #ofAggregate(place: Place, aggregate: string): Promise<RawRecord[]> {
    // A session's name does not begin its subject.
    const text = `${aggregate}.`;
    return this.#records(place, { text, isWanted: (one) => aggregateOf(one) === aggregate });
  }

  async #records({ segment, frame }: Place, wanted: Wanted): Promise<RawRecord[]> {
    const table = await this.#frameTable(segment);
    if (frame >= table.frames)
      throw new CorruptSegment(segment, null, `the index has no frame ${frame}`);
    const row = table.frame(frame);
    const key = `${dataName(segment)}:${frame}`;
    const lines = await this.#cache.get(
      key,
      ({ length }) => length,
      () => this.#lines(segment, frame),
    );
    return recordsIn(lines, wanted, (line, problem) => {
      throw new CorruptSegment(segment, row.firstLine + line, problem);
    });
  }

  /** The lines of a frame, which is the one that was sealed at this place. */
  async #lines(segment: number, number: number): Promise<Buffer> {
    const table = await this.#frameTable(segment);
    const { offset, length, rawLength, firstLine, sha256 } = table.frame(number);
    const corrupt = (problem: string, cause?: unknown) =>
      new CorruptSegment(segment, firstLine, problem, { cause });
    const data = await this.#files.read(dataName(segment), { offset, length }).catch((error) => {
      // Files that do not answer are no damage.
      if (!(error instanceof FileMissing)) throw error;
      throw corrupt('the data is missing', error);
    });
    if (!sumOf(data).equals(sha256)) throw corrupt('the frame is not the one that was sealed');
    return decompressLines(data, rawLength).catch((error: unknown) => {
      throw corrupt('the frame cannot be decompressed', error);
    });
  }

  async #frameTable(segment: number): Promise<FrameTable> {
    return (await this.#index(segment)).table;
  }

  async #entries(range: Range): Promise<ProvenEntries> {
    if (range.first === range.last) return (await this.#index(range.first)).entries;
    return this.#cache.get(
      `lookup:${range.first}-${range.last}`,
      ({ sums }) => sums.length,
      () => openEntries(this.#files, range, this.trusted),
    );
  }

  #index(segment: number): Promise<SegmentIndex> {
    return this.#cache.get(
      `index:${segment}`,
      ({ table, entries }) => table.bytes + entries.sums.length,
      () => readIndex(this.#files, this.#manifest(segment)),
    );
  }

  #manifest(segment: number): SegmentManifest {
    return this.manifests[segment - 1] as SegmentManifest;
  }
}

/** The subjects of a range. */
function filterOf(range: RecordRange): string {
  if ('filter' in range) return range.filter;
  return range.organizationId === null ? '>' : (filtersFor(range.organizationId, null)[0] ?? '>');
}

function isAfter(one: Place, other: Place): boolean {
  return one.segment > other.segment || (one.segment === other.segment && one.frame > other.frame);
}
