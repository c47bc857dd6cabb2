import { filtersFor, matchesAnyFilter } from '#events/subjects.ts';
import type { RawRecord, RawRecords, RecordRange } from '#src/event-store/raw-records.ts';
import { FileMissing, type ArchiveFiles } from './archive-files.ts';
import { ByteCache } from './byte-cache.ts';
import { readFrameTable, tablesOf, type EntryTable } from './lookup-files.ts';
import { LookupSearch, type Place } from './lookup-search.ts';
import { beginningWith, decompressLines, recordsIn, type Wanted } from './frames.ts';
import { readManifests } from './read-manifests.ts';
import { ahead } from './pipeline.ts';
import { CorruptSegment, dataName, type SegmentManifest } from './manifest.ts';
import { aggregateOf, lastWhere, nanosOf, type Frame, type FrameTable } from './segment-index.ts';

/** Reads sealed segments. What it holds in memory is a manifest for each segment, and a cache. */
export type Archive = {
  /** Takes in segments that were sealed since. */
  refresh(): Promise<void>;
  /** The manifests, in order. */
  segments(): readonly SegmentManifest[];
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
  /** Bound of decompressed frames, tables of frames and blocks of lookup files. */
  cacheBytesMax?: number;
};

const CACHE_BYTES_MAX = 64 * 1024 * 1024;
/** Frames that are read ahead; each is decompressed outside of the main thread. */
const FRAMES_AHEAD = 4;
/** Each merge removes the lookup files that it replaces; several may end during one search. */
const SEARCHES_MAX = 5;

/** @throws CorruptSegment for a manifest that is missing or malformed */
export async function openArchive(
  files: ArchiveFiles,
  { log, cacheBytesMax = CACHE_BYTES_MAX }: ArchiveOptions = {},
): Promise<Archive> {
  const archive = new ArchiveReader(files, log ?? null, new ByteCache(cacheBytesMax));
  await archive.refresh();
  return {
    refresh: () => archive.refresh(),
    segments: () => archive.manifests,
    endSequence: () => archive.manifests.at(-1)?.last_sequence ?? 0,
    endTime: () => archive.manifests.at(-1)?.last_stored_at ?? null,
    records: { read: (range) => archive.read(range) },
    readAggregate: (aggregate, range) => archive.readAggregate(aggregate, range),
    lastUpTo: (aggregate, sequence) => archive.lastUpTo(aggregate, sequence),
    sequenceBefore: (time) => archive.sequenceBefore(time),
  };
}

class ArchiveReader {
  manifests: readonly SegmentManifest[] = [];
  readonly #files: ArchiveFiles;
  readonly #log: string | null;
  readonly #cache: ByteCache;
  readonly #search: LookupSearch;
  #tables: EntryTable[] = [];

  constructor(files: ArchiveFiles, log: string | null, cache: ByteCache) {
    this.#files = files;
    this.#log = log;
    this.#cache = cache;
    this.#search = new LookupSearch(files, cache);
  }

  async refresh(): Promise<void> {
    for (let tries = 1; ; tries += 1)
      try {
        const names = await this.#files.list();
        const manifests = await readManifests(this.#files, {
          names,
          known: this.manifests,
          log: this.#log,
        });
        const tables = await tablesOf(this.#files, manifests.length, names);
        this.manifests = manifests;
        this.#tables = tables;
        return;
      } catch (error) {
        // A lookup file was merged after the names were listed.
        if (!(error instanceof FileMissing) || tries === SEARCHES_MAX) throw error;
      }
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
        for await (const place of this.#search.descending(table, aggregate, from)) {
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
          for await (const place of this.#search.ascending(table, aggregate, next)) {
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
      () => this.#lines(segment, row),
    );
    return recordsIn(lines, wanted, (line, problem) => {
      throw new CorruptSegment(segment, row.firstLine + line, problem);
    });
  }

  async #lines(segment: number, { offset, length, rawLength, firstLine }: Frame): Promise<Buffer> {
    const corrupt = (problem: string) => (error: unknown) => {
      throw new CorruptSegment(segment, firstLine, problem, error);
    };
    const data = await this.#files.read(dataName(segment), { offset, length }).catch((error) => {
      // Files that do not answer are no damage.
      if (!(error instanceof FileMissing)) throw error;
      return corrupt('the data is missing')(error);
    });
    return decompressLines(data, rawLength).catch(corrupt('the frame cannot be decompressed'));
  }

  #frameTable(segment: number): Promise<FrameTable> {
    return this.#cache.get(
      `frames:${segment}`,
      ({ bytes }) => bytes,
      () => readFrameTable(this.#files, segment),
    );
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
