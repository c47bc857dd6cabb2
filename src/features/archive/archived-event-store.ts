import { decode, MalformedEvent, UnknownEvent } from '#events/codec.ts';
import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import { matchesAnyFilter, streamFilter, subjectOfOne } from '#events/subjects.ts';
import type { AggregateRef } from '#events/subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type {
  EventStore,
  HistoryOptions,
  ReadOptions,
  UnreadableEvent,
} from '#src/kernel/event-store/event-store.ts';
import type { RawRecord, RawRecords, RecordRange } from '#src/kernel/event-store/raw-records.ts';
import { readable } from '#src/kernel/event-store/unreadable.ts';
import type { Archive } from './archive.ts';
import type { OpenArchive } from './open-once.ts';
import { aggregateOf } from './segment-index.ts';

const BATCH_MAX = 500;
/** The first event of an aggregate's life: nothing of it is older. */
const BEGINNINGS = new Set(['session.requested', 'workload.provisioning']);

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
  const log: TruncatedLog = { info: () => eventStore.info(), open };

  async function lastArchived<Event>(aggregate: AggregateRef, upTo: number): Promise<Event | null> {
    const end = Math.min(upTo, await purgedUpTo(log));
    if (end === 0) return null;
    const last = await (await openUpTo(log, end)).lastUpTo(nameOf(aggregate), end);
    // The archive finds a session by its id: another organization's is not this caller's.
    const isOwn = last !== null && matchesAnyFilter([streamFilter(aggregate)], last.subject);
    return isOwn ? (readable(() => eventOf(last)) as Event) : null;
  }

  return {
    ...eventStore,

    async readLast(aggregate, options) {
      const last = await eventStore.readLast(aggregate, options);
      // Every other aggregate that is still used is carried forward into the log.
      if (last !== null || aggregate.kind !== 'session' || options?.isNew === true) return last;
      return lastArchived<RecordedOf<typeof aggregate.kind>>(aggregate, Infinity);
    },

    async readLastUpTo(aggregate, sequence) {
      const last = await eventStore.readLastUpTo(aggregate, sequence);
      return last ?? lastArchived<RecordedOf<typeof aggregate.kind>>(aggregate, sequence);
    },

    async *history(aggregate, options) {
      type Event = RecordedOf<typeof aggregate.kind>;
      const range = { after: 0, upTo: Infinity };
      // A life that begins in the log is read without the archive.
      if ((await purgedUpTo(log)) > 0)
        for await (const { type, sequence } of eventStore.history(aggregate, options)) {
          if (BEGINNINGS.has(type)) range.after = sequence - 1;
          break;
        }
      const batches = acrossBorder<Event>(log, range, {
        archived: (archive, part) =>
          archivedHistory<Event>(archive, aggregate, { ...part, ...options }),
        logged: ({ after }) => batchesOf(eventStore.history(aggregate, options), after),
      });
      for await (const events of batches) yield* events;
    },

    async *read({ includesArchive = false, ...options }) {
      if (!includesArchive) return yield* eventStore.read(options);
      const { after = 0, onUnreadable } = options;
      const upTo = Math.min(options.upTo ?? Infinity, await eventStore.lastSequence());
      const range = { after, upTo };
      const entries = acrossBorder<Entry>(log, range, {
        archived: (archive, part) => archivedEntries(archive, { ...options, ...part }),
        logged: (part) => loggedEntries(eventStore, { ...options, ...part }),
      });
      for await (const batch of entries) yield* readableOf(batch, onUnreadable);
    },

    async sequenceBefore(time) {
      const found = await eventStore.sequenceBefore(time);
      const end = await purgedUpTo(log);
      if (found > end || end === 0) return found;
      return (await (await openUpTo(log, end)).sequenceBefore(time)) ?? end;
    },
  };
}

/** The stored messages of the log and its archive together. */
export function withArchivedRecords(
  records: RawRecords,
  eventStore: Pick<EventStore, 'info'>,
  open: OpenArchive,
): RawRecords {
  const log: TruncatedLog = { info: () => eventStore.info(), open };
  return {
    read: (range: RecordRange) =>
      acrossBorder(log, range, {
        archived: (archive, part) => archive.records.read({ ...range, ...part }),
        logged: (part) => records.read({ ...range, ...part }),
      }),
  };
}

/** A log that loses its beginning from time to time, and the archive that has it then. */
type TruncatedLog = Pick<EventStore, 'info'> & { open: OpenArchive };

type Part = { after: number; upTo: number };

/** The last sequence that the log no longer has; 0: it has all. */
async function purgedUpTo(log: TruncatedLog): Promise<number> {
  const { firstSequence } = await log.info();
  return firstSequence - 1;
}

/** The archive, which has all up to `end`. @throws Unavailable if it lacks some of that */
async function openUpTo(log: TruncatedLog, end: number): Promise<Archive> {
  const archive = await log.open();
  if (archive.endSequence() < end) await archive.refresh();
  if (archive.endSequence() >= end) return archive;
  const lacking = `the archive ends at ${archive.endSequence()}, the log begins at ${end + 1}`;
  throw new Unavailable('event-log', new Error(lacking));
}

/**
 * A range whose beginning is in the archive and whose end is in the log, while the log may be
 * purged. What was read from the log is complete if nothing of it is purged by then; so the border
 * is looked at after each batch. If it has passed the batch, the archive is read up to the border
 * instead, and the log from there. Each such turn moves on to the border, so it ends at `upTo`.
 */
async function* acrossBorder<Entry extends { sequence: number }>(
  log: TruncatedLog,
  { after, upTo }: Part,
  sources: {
    archived: (archive: Archive, part: Part) => AsyncIterable<Entry[]>;
    logged: (part: Part) => AsyncIterable<Entry[]>;
  },
): AsyncGenerator<Entry[], void, void> {
  for (let place = after; place < upTo;) {
    const purged = await purgedUpTo(log);
    if (place < purged) {
      const end = Math.min(purged, upTo);
      yield* sources.archived(await openUpTo(log, purged), { after: place, upTo: end });
      place = end;
      continue;
    }
    let isWhole = true;
    for await (const entries of sources.logged({ after: place, upTo })) {
      isWhole = (await purgedUpTo(log)) <= place;
      if (!isWhole) break;
      yield entries;
      place = entries.at(-1)?.sequence ?? place;
    }
    if (isWhole && (await purgedUpTo(log)) <= place) return;
  }
}

async function* archivedHistory<Event>(
  archive: Archive,
  aggregate: AggregateRef,
  { types, ...part }: Part & HistoryOptions,
): AsyncGenerator<Event[], void, void> {
  const own = [streamFilter(aggregate)];
  for await (const records of archive.readAggregate(nameOf(aggregate), part))
    yield records
      .filter(({ subject }) => matchesAnyFilter(own, subject))
      .map((record) => readable(() => eventOf(record)))
      .filter(({ type }) => types?.has(type) !== false) as Event[];
}

/** An event, or the report of one that cannot be decoded. */
type Entry = RecordedEvent | UnreadableEvent;

/** The events before an unreadable one are yielded before its report, which may throw. */
function* readableOf(
  entries: readonly Entry[],
  onUnreadable: ReadOptions['onUnreadable'],
): Generator<RecordedEvent[], void, void> {
  let events: RecordedEvent[] = [];
  for (const entry of entries)
    if ('reason' in entry) {
      if (events.length > 0) yield events;
      events = [];
      onUnreadable(entry);
    } else events.push(entry);
  if (events.length > 0) yield events;
}

async function* loggedEntries(
  eventStore: EventStore,
  options: ReadOptions,
): AsyncGenerator<Entry[], void, void> {
  let unreadable: UnreadableEvent[] = [];
  const onUnreadable = (poison: UnreadableEvent) => void unreadable.push(poison);
  for await (const events of eventStore.read({ ...options, onUnreadable })) {
    yield [...unreadable, ...events].toSorted((a, b) => a.sequence - b.sequence);
    unreadable = [];
  }
  yield unreadable;
}

async function* archivedEntries(
  archive: Archive,
  { subjects, after = 0, upTo = Infinity, batchMax = BATCH_MAX, signal }: ReadOptions,
): AsyncGenerator<Entry[], void, void> {
  for await (const records of recordsOf(archive, subjects, { after, upTo })) {
    const entries = records
      .filter(({ subject }) => matchesAnyFilter(subjects, subject))
      .map((record) => entryOf(record));
    for (let from = 0; from < entries.length; from += batchMax) {
      if (signal?.aborted === true) return;
      yield entries.slice(from, from + batchMax);
    }
  }
}

function entryOf(record: RawRecord): Entry {
  try {
    return eventOf(record);
  } catch (error) {
    if (!(error instanceof MalformedEvent)) throw error;
    const { sequence, subject } = record;
    const kind = error instanceof UnknownEvent ? 'unknown' : 'malformed';
    return { sequence, subject, reason: error.message, kind };
  }
}

/** The events above a sequence, in batches. The last batch may be empty. */
async function* batchesOf<Event extends { sequence: number }>(
  events: AsyncIterable<Event>,
  after: number,
): AsyncGenerator<Event[], void, void> {
  let batch: Event[] = [];
  for await (const event of events) {
    if (event.sequence > after) batch.push(event);
    if (batch.length < BATCH_MAX) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/** One aggregate's records are found by the index; others by reading all of the range. */
function recordsOf(
  archive: Archive,
  subjects: readonly string[],
  range: Part,
): AsyncIterable<RawRecord[]> {
  const [filter = '>', ...others] = subjects;
  const names = new Set(subjects.map(aggregateIn));
  const [name = null] = names;
  if (names.size === 1 && name !== null) return archive.readAggregate(name, range);
  return archive.records.read({ ...range, filter: others.length === 0 ? filter : '>' });
}

/** The name of the one aggregate that the filter selects; null: it may select several. */
function aggregateIn(filter: string): string | null {
  const subject = subjectOfOne(filter);
  return subject === null ? null : aggregateOf(subject);
}

/** The aggregate's name in the archive's index. */
function nameOf(aggregate: AggregateRef): string {
  return aggregateOf(streamFilter(aggregate));
}

function eventOf({ subject, headers, body, sequence }: RawRecord): RecordedEvent {
  const values = new Map(headers);
  return decode(subject, (name) => values.get(name) ?? '', body, sequence);
}
