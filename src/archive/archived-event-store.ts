import { decode, MalformedEvent, UnknownEvent } from '#events/codec.ts';
import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import { matchesAnyFilter, streamFilter, subjectOfOne } from '#events/subjects.ts';
import type { AggregateRef } from '#events/subjects.ts';
import { sleep } from '#src/async/sleep.ts';
import { Unavailable } from '#src/errors.ts';
import type { EventStore, ReadOptions } from '#src/event-store/event-store.ts';
import type { RawRecord, RawRecords, RecordRange } from '#src/event-store/raw-records.ts';
import { openArchive, type Archive } from './archive.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { CorruptSegment } from './manifest.ts';
import { aggregateOf } from './segment-index.ts';

const BATCH_MAX = 500;
/** The first event of an aggregate's life: nothing of it is older. */
const BEGINNINGS = new Set(['session.requested', 'workload.provisioning']);

/** Opens the archive; a later call after a success returns the same one. */
export type OpenArchive = () => Promise<Archive>;

/** Opens the archive at the first call, and again after a failure. */
export function openOnce(files: () => Promise<ArchiveFiles>): OpenArchive {
  let opening: Promise<Archive> | null = null;
  return () => {
    opening ??= files()
      .then((found) => openArchive(found))
      .catch((error: unknown) => {
        opening = null;
        if (error instanceof CorruptSegment) throw error;
        throw new Unavailable('event-log', error);
      });
    return opening;
  };
}

/**
 * The event store together with its archive: the same answers as before events were archived. A
 * single session, a history, a past state and a past sequence are found in either; a range is read
 * from both with `includesArchive`. Appends and subscriptions are the store's own, so that no
 * process reads the archive at its start.
 *
 * The log decides what is read from where: from its first event on it is read, before that the
 * archive. What is purged from the log is in the archive already. Until something is, the archive
 * is not opened.
 */
export function withArchive(eventStore: EventStore, open: OpenArchive): EventStore {
  const border = () => archivedUpTo(eventStore, open);

  async function lastArchived<Event>(aggregate: AggregateRef, upTo: number): Promise<Event | null> {
    const end = Math.min(upTo, await border());
    if (end === 0) return null;
    const last = await (await open()).lastUpTo(nameOf(aggregate), end);
    // The archive finds a session by its id: another organization's is not this caller's.
    const isOwn = last !== null && matchesAnyFilter([streamFilter(aggregate)], last.subject);
    return isOwn ? (eventOf(last) as Event) : null;
  }

  return {
    ...eventStore,

    async readLast(aggregate, options) {
      const last = await eventStore.readLast(aggregate, options);
      // Every other aggregate that is still used is carried forward into the log.
      if (last !== null || aggregate.kind !== 'session') return last;
      return lastArchived<RecordedOf<typeof aggregate.kind>>(aggregate, Infinity);
    },

    async readLastUpTo(aggregate, sequence) {
      const last = await eventStore.readLastUpTo(aggregate, sequence);
      return last ?? lastArchived<RecordedOf<typeof aggregate.kind>>(aggregate, sequence);
    },

    async *history(aggregate) {
      const log = eventStore.history(aggregate)[Symbol.asyncIterator]();
      const first = await log.next();
      const isWhole = first.done !== true && BEGINNINGS.has(first.value.type);
      const end = isWhole ? 0 : await border();
      if (end > 0)
        for await (const records of (await open()).readAggregate(nameOf(aggregate), { upTo: end }))
          for (const record of records)
            if (matchesAnyFilter([streamFilter(aggregate)], record.subject))
              yield eventOf(record) as RecordedOf<typeof aggregate.kind>;
      for (let next = first; next.done !== true; next = await log.next())
        if (next.value.sequence > end) yield next.value;
      if (first.done === true) return;
      // The log may have lost events of this aggregate before they were read there.
      const { firstSequence } = await eventStore.info();
      if (firstSequence > Math.max(first.value.sequence, end + 1)) throw archivedMeanwhile();
    },

    async *read(options) {
      const { after = 0, upTo = Infinity, includesArchive = false } = options;
      const end = includesArchive ? await border() : 0;
      if (after < end) yield* readArchive(await open(), options, Math.min(end, upTo));
      yield* eventStore.read({ ...options, after: Math.max(after, end) });
      if (includesArchive && upTo > end) await requireSameBorder(border, end);
    },

    async sequenceBefore(time) {
      const found = await eventStore.sequenceBefore(time);
      const end = await border();
      if (found > end || end === 0) return found;
      return (await (await open()).sequenceBefore(time)) ?? end;
    },
  };
}

/** How far the lists of sessions reach back. */
export type ArchiveBorder = {
  /**
   * Sessions that ended before this time (ISO 8601 UTC) are in the archive alone; null: none are,
   * as far as is known.
   */
  completeFrom: () => string | null;
} & AsyncDisposable;

const LOOK_EVERY_MS = 5_000;

/** Looks from time to time how far the log has been truncated. */
export function watchArchiveBorder(
  eventStore: Pick<EventStore, 'info'>,
  open: OpenArchive,
): ArchiveBorder {
  const stop = new AbortController();
  const { signal } = stop;
  let seen = 1;
  let time: string | null = null;

  async function look(): Promise<void> {
    const { firstSequence } = await eventStore.info();
    if (firstSequence === seen) return;
    const archive = await open();
    await archive.refresh();
    const end = archive.endTime();
    time = end === null ? null : new Date(end).toISOString();
    seen = firstSequence;
  }
  async function watch(): Promise<void> {
    while (!signal.aborted) {
      // Event store or archive is unavailable: the next look finds the border.
      await look().catch(() => undefined);
      await sleep(LOOK_EVERY_MS, signal);
    }
  }
  const watching = watch();
  return {
    completeFrom: () => time,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await watching;
    },
  };
}

/** The stored messages of the log and its archive together. */
export function withArchivedRecords(
  records: RawRecords,
  eventStore: Pick<EventStore, 'info'>,
  open: OpenArchive,
): RawRecords {
  const border = () => archivedUpTo(eventStore, open);
  return {
    async *read(range: RecordRange) {
      const end = await border();
      if (range.after < end)
        yield* (await open()).records.read({ ...range, upTo: Math.min(end, range.upTo) });
      if (range.upTo <= end) return;
      yield* records.read({ ...range, after: Math.max(range.after, end) });
      await requireSameBorder(border, end);
    },
  };
}

/**
 * The last sequence that the log no longer has; 0: it has all.
 * @throws Unavailable if the archive lacks events up to there
 */
async function archivedUpTo(
  eventStore: Pick<EventStore, 'info'>,
  open: OpenArchive,
): Promise<number> {
  const { firstSequence } = await eventStore.info();
  const end = firstSequence - 1;
  if (end === 0) return 0;
  const archive = await open();
  if (archive.endSequence() < end) await archive.refresh();
  if (archive.endSequence() < end) {
    const lacking = `the archive ends at ${archive.endSequence()}, the log begins at ${end + 1}`;
    throw new Unavailable('event-log', new Error(lacking));
  }
  return end;
}

/** Events may have been purged from the log before they were read there. @throws Unavailable */
async function requireSameBorder(border: () => Promise<number>, end: number): Promise<void> {
  if ((await border()) > end) throw archivedMeanwhile();
}

function archivedMeanwhile(): Unavailable {
  return new Unavailable('event-log', new Error('events were archived while they were read'));
}

async function* readArchive(
  archive: Archive,
  { subjects, after = 0, batchMax = BATCH_MAX, onUnreadable, signal }: ReadOptions,
  upTo: number,
): AsyncGenerator<RecordedEvent[], void, void> {
  for await (const records of recordsOf(archive, subjects, { after, upTo })) {
    const events: RecordedEvent[] = [];
    for (const record of records) {
      const { sequence, subject } = record;
      if (!matchesAnyFilter(subjects, subject)) continue;
      try {
        events.push(eventOf(record));
      } catch (error) {
        if (!(error instanceof MalformedEvent)) throw error;
        const kind = error instanceof UnknownEvent ? 'unknown' : 'malformed';
        onUnreadable({ sequence, subject, reason: error.message, kind });
      }
    }
    for (let from = 0; from < events.length; from += batchMax) {
      if (signal?.aborted === true) return;
      yield events.slice(from, from + batchMax);
    }
  }
}

/** One aggregate's records are found by the index; others by reading all of the range. */
function recordsOf(
  archive: Archive,
  subjects: readonly string[],
  range: { after: number; upTo: number },
): AsyncIterable<RawRecord[]> {
  const [filter = '>', ...others] = subjects;
  const subject = others.length === 0 ? subjectOfOne(filter) : null;
  if (subject !== null) return archive.readAggregate(aggregateOf(subject), range);
  return archive.records.read({ ...range, filter: others.length === 0 ? filter : '>' });
}

/** The aggregate's name in the archive's index. */
function nameOf(aggregate: AggregateRef): string {
  return aggregateOf(streamFilter(aggregate));
}

function eventOf({ subject, headers, body, sequence }: RawRecord): RecordedEvent {
  const values = new Map(headers);
  return decode(subject, (name) => values.get(name) ?? '', body, sequence);
}
