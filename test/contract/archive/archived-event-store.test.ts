import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import {
  filters,
  matchesAnyFilter,
  sessionAnywhere,
  streamFilter,
  subjectOf,
  type AggregateRef,
} from '#events/subjects.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { withArchive, withArchivedRecords } from '#src/features/archive/archived-event-store.ts';
import { openOnce } from '#src/features/archive/open-once.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { RawRecord, RawRecords } from '#src/kernel/event-store/raw-records.ts';
import { noHead, sealAndMerge, signer } from '#test/support/archive/archive.fixture.ts';
import {
  eventsIn,
  live,
  manyLives,
  openArchivedLog,
  recordsIn,
  type ArchivedLog,
} from '#test/support/archive/archived-log.ts';
import { accessed } from '#test/support/examples.ts';
import { record } from '#test/support/history.ts';

let store: ArchivedLog;
let aggregates: AggregateRef[];
/** All that was stored before anything was archived. */
let all: RecordedEvent[];
let stored: RawRecord[];
let last: number;

beforeAll(async () => {
  store = await openArchivedLog();
  const lived = await live(store.log, manyLives());
  aggregates = [...new Map(lived.map((one) => [streamFilter(one), one])).values()];
  all = await eventsIn(store.log);
  last = await store.log.lastSequence();
  stored = await recordsIn(store.logRecords, 0, last);
});
afterAll(() => store?.[Symbol.asyncDispose]());

const filterOf = (aggregate: AggregateRef) => [streamFilter(aggregate)];
const subject = (event: RecordedEvent) => subjectOf(event.aggregate, event.type);
const matching = (subjects: readonly string[], after = 0, upTo = Infinity) =>
  all.filter(
    (event) =>
      event.sequence > after &&
      event.sequence <= upTo &&
      matchesAnyFilter(subjects, subject(event)),
  );

/** Seals up to a sequence, and purges up to one. */
async function archive(sealedTo: number, border: number): Promise<void> {
  const { files, truncation, log, logRecords, open } = store;
  await (await open()).refresh();
  const after = (await open()).endSequence();
  const range = { after, upTo: sealedTo, organizationId: null };
  const { id } = await log.info();
  await sealAndMerge(logRecords.read(range), { files, log: id, signer, recordsMax: 7 });
  await truncation.truncate(border);
}

const session = (id: string, organizationId = 'acme') =>
  ({ kind: 'session', organizationId, id }) as const;

describe('before anything is archived', () => {
  it('the archive is not opened', async () => {
    const open = () => expect.fail('the archive was opened');
    const eventStore = withArchive(store.log, open);
    for (const aggregate of [...aggregates, session('unknown')]) {
      const events = matching(filterOf(aggregate));
      expect(await eventStore.readLast(aggregate)).toEqual(events.at(-1) ?? null);
      expect(await eventStore.readLastUpTo(aggregate, 3)).toEqual(
        matching(filterOf(aggregate), 0, 3).at(-1) ?? null,
      );
      expect(await Array.fromAsync(eventStore.history(aggregate))).toEqual(events);
    }
    expect(await eventsIn(eventStore)).toEqual(all);
    expect(await eventStore.sequenceBefore(new Date(0).toISOString())).toBe(0);
    const records = withArchivedRecords(store.logRecords, store.log, open);
    expect(await recordsIn(records, 0, last)).toEqual(stored);
  });
});

/** The archive's end and the log's border; the same, or the log still has some of the archive. */
const borders = [
  [5, 1],
  [9, 9],
  [30, 17],
  [30, 30],
  [54, 41],
] as const;

describe.each(borders)('archived up to %i and purged up to %i', (sealedTo, border) => {
  let times: string[];
  let sequences: number[];

  beforeAll(async () => {
    const ofRecords = stored.map(({ storedAt }) => Date.parse(storedAt));
    const first = ofRecords[0] ?? 0;
    const moments = [0, first - 1, ...ofRecords.flatMap((ms) => [ms, ms + 1]), Date.now() + 1000];
    times = [...new Set(moments)].map((ms) => new Date(ms).toISOString());
    sequences = await Promise.all(times.map((time) => store.eventStore.sequenceBefore(time)));
    expect(sequences.at(-1)).toBe(last);
    await archive(sealedTo, border);
    expect(await store.log.info()).toMatchObject({ firstSequence: border + 1 });
  });

  it('the last event of each session, and of each other aggregate that the log has', async () => {
    for (const aggregate of aggregates) {
      const event = matching(filterOf(aggregate)).at(-1);
      const isKept = aggregate.kind === 'session' || (event?.sequence ?? 0) > border;
      for (const options of [{}, { fromLeader: true }])
        expect(await store.eventStore.readLast(aggregate, options)).toEqual(isKept ? event : null);
    }
  });

  it('the last event up to each sequence', async () => {
    for (const aggregate of aggregates) {
      const found = Array.from({ length: last + 2 }, (_, sequence) =>
        store.eventStore.readLastUpTo(aggregate, sequence),
      );
      const expected = Array.from(
        { length: last + 2 },
        (_, sequence) => matching(filterOf(aggregate), 0, sequence).at(-1) ?? null,
      );
      expect(await Promise.all(found)).toEqual(expected);
    }
  });

  it('each history', async () => {
    for (const aggregate of aggregates)
      expect(await Array.fromAsync(store.eventStore.history(aggregate))).toEqual(
        matching(filterOf(aggregate)),
      );
  });

  it.each([
    ['all', filters.all],
    ['of the tenants', filters.tenants],
    ['of the fleet', filters.fleet],
    ['of an organization', ['evt.acme.>']],
    ['of its sessions', ['evt.acme.session.>']],
    ['of its ledger', ['evt.acme.ledger.>']],
    ['of a session', ['evt.acme.session.ses_1.>']],
    ['of a session by its id', [sessionAnywhere('ses_3')]],
    ['of a session under another organization', ['evt.other.session.ses_1.>']],
    ['of a type', ['evt.*.session.*.activated']],
    ['of a type of one session', ['evt.acme.session.ses_2.activated']],
    ['of two aggregates', ['evt.acme.session.ses_2.>', 'fleet.workload.wl_2.>']],
    ['of a server', ['fleet.server.srv_2.>']],
    ['of nothing', ['evt.absent.>']],
  ] as [string, string[]][])('ranges %s', async (of, subjects) => {
    const places = [0, border, sealedTo];
    // Where exactly a range is divided does not depend on what it is of.
    if (of === 'all') places.push(1, 6, border - 1, border + 1, last - 1, last, last + 9);
    for (const after of new Set(places))
      for (const upTo of new Set([...places, Infinity])) {
        const batchMax = [1, 3, 500][(after + Math.min(upTo, last)) % 3] ?? 1;
        const read = await eventsIn(store.eventStore, { subjects, after, upTo, batchMax });
        expect([after, upTo, read]).toEqual([after, upTo, matching(subjects, after, upTo)]);
      }
  });

  it('a range of the log alone, without includesArchive', async () => {
    const { eventStore } = store;
    const range = { includesArchive: false };
    expect(await eventsIn(eventStore, range)).toEqual(matching(filters.all, border));
  });

  it('the sequence before each time', async () => {
    for (const [at, time] of times.entries())
      expect([time, await store.eventStore.sequenceBefore(time)]).toEqual([time, sequences[at]]);
  });

  it('the records of each range', async () => {
    const places = [0, 1, border - 1, border, border + 1, sealedTo, last - 1, last];
    for (const after of places)
      for (const upTo of places.filter((place) => place >= after))
        expect(await recordsIn(store.records, after, upTo)).toEqual(stored.slice(after, upTo));
    const own = { after: 0, upTo: last, filter: 'evt.acme.session.ses_2.>' };
    expect((await Array.fromAsync(store.records.read(own))).flat()).toEqual(
      stored.filter((one) => one.subject.startsWith('evt.acme.session.ses_2.')),
    );
  });

  it('another organization finds no session by its id', async () => {
    const { eventStore } = store;
    for (const { aggregate } of matching(filters.sessions)) {
      if (aggregate.kind !== 'session') continue;
      const organizationId = aggregate.organizationId === 'acme' ? 'other' : 'acme';
      const foreign = session(aggregate.id, organizationId);
      expect(await eventStore.readLast(foreign)).toBeNull();
      expect(await eventStore.readLastUpTo(foreign, last)).toBeNull();
      expect(await Array.fromAsync(eventStore.history(foreign))).toEqual([]);
    }
  });
});

describe('an archive', () => {
  const ended = session('ses_1');

  it('that lacks events makes the event store unavailable, and not shorter', async () => {
    const eventStore = withArchive(
      store.log,
      openOnce(async () => createMemoryFiles(), noHead),
    );
    const lacking = openOnce(async () => createMemoryFiles(), noHead);
    const records = withArchivedRecords(store.logRecords, store.log, lacking);
    await expect(eventStore.readLast(session('unknown'))).rejects.toThrow(Unavailable);
    await expect(eventStore.readLastUpTo(ended, 3)).rejects.toThrow(Unavailable);
    await expect(Array.fromAsync(eventStore.history(ended))).rejects.toThrow(Unavailable);
    await expect(eventsIn(eventStore)).rejects.toThrow(Unavailable);
    await expect(eventStore.sequenceBefore(new Date(0).toISOString())).rejects.toThrow(Unavailable);
    await expect(recordsIn(records, 0, last)).rejects.toThrow(Unavailable);
  });

  it('that cannot be opened at first is opened later, once', async () => {
    let tries = 0;
    const open = openOnce(async () => {
      tries += 1;
      if (tries < 3) throw new Error('the folder is away');
      return store.files;
    }, noHead);
    const eventStore = withArchive(store.log, open);
    for (let failed = 0; failed < 2; failed += 1)
      await expect(eventStore.readLastUpTo(ended, 9)).rejects.toThrow(Unavailable);
    const history = matching(filterOf(ended));
    expect(await Array.fromAsync(eventStore.history(ended))).toEqual(history);
    expect(await Array.fromAsync(eventStore.history(ended))).toEqual(history);
    expect(tries).toBe(3);
  });

  it('whose files do not answer is an outage, and no corrupt segment', async () => {
    const gone = { isAway: false };
    const away = new Error('connect ECONNREFUSED');
    const answer = <Result>(ask: () => Promise<Result>) =>
      gone.isAway ? Promise.reject(away) : ask();
    const files: ArchiveFiles = {
      ...store.files,
      list: () => answer(() => store.files.list()),
      size: (name) => answer(() => store.files.size(name)),
      read: (name, range) => answer(() => store.files.read(name, range)),
    };
    const open = openOnce(async () => files, noHead);
    const eventStore = withArchive(store.log, open);
    await open();
    gone.isAway = true;
    await expect(Array.fromAsync(eventStore.history(ended))).rejects.toThrow(Unavailable);
    await expect(eventStore.readLastUpTo(ended, 9)).rejects.toThrow(Unavailable);
    await expect(eventsIn(eventStore)).rejects.toThrow(Unavailable);
    gone.isAway = false;
    expect(await Array.fromAsync(eventStore.history(ended))).toEqual(matching(filterOf(ended)));
  });

  describe('while the log is purged', () => {
    const open = session('ses_5', 'other');
    let end: number;
    let border: number;
    let whole: { entries: string[]; history: RecordedEvent[]; records: RawRecord[] };

    beforeAll(async () => {
      const malformed: number[] = [];
      for (let batch = 0; batch < 3; batch += 1) {
        await record<'session'>(store.log, open, ...Array.from({ length: 400 }, () => accessed(1)));
        const { seq } = await store.real.connection.js.publish('evt.acme.session.x.stopped', '{}');
        malformed.push(seq);
      }
      const { firstSequence, lastSequence } = await store.log.info();
      [border, end] = [firstSequence - 1, lastSequence];
      const entries = Array.from({ length: end }, (_, at) =>
        malformed.includes(at + 1) ? `unreadable ${at + 1}` : `event ${at + 1}`,
      );
      await archive(end - 1, border);
      whole = {
        entries,
        history: await Array.fromAsync(store.eventStore.history(open)),
        records: await recordsIn(store.records, 0, end),
      };
    });

    async function entriesIn(eventStore: EventStore, range: { after?: number; upTo?: number }) {
      const entries: string[] = [];
      for await (const batch of eventStore.read({
        ...range,
        subjects: filters.all,
        batchMax: 50,
        includesArchive: true,
        onUnreadable: ({ sequence }) => entries.push(`unreadable ${sequence}`),
      }))
        entries.push(...batch.map(({ sequence }) => `event ${sequence}`));
      return entries;
    }

    /** Purges before each read of the log, and after each of its batches; 350 events at most. */
    const purgingLog = () => {
      const purgedMost = border + 350;
      const purge = async () => {
        if (border === purgedMost) return;
        border += 70;
        await store.truncation.truncate(border);
      };
      async function* purged<Batch>(read: () => AsyncIterable<Batch>) {
        await purge();
        for await (const batch of read()) {
          yield batch;
          await purge();
        }
      }
      const log: EventStore = {
        ...store.log,
        read: (options) => purged(() => store.log.read(options)),
        history: (aggregate) => purged(() => store.log.history(aggregate)),
      };
      const records: RawRecords = { read: (range) => purged(() => store.logRecords.read(range)) };
      return { log: withArchive(log, store.open), records };
    };

    it('a range has no hole, and its unreadable events are reported once, in their place', async () => {
      expect(await entriesIn(store.eventStore, {})).toEqual(whole.entries);
      const last = { after: end - 1, upTo: end };
      expect(await entriesIn(store.eventStore, last)).toEqual([`unreadable ${end}`]);
      const before = border;
      expect(await entriesIn(purgingLog().log, {})).toEqual(whole.entries);
      expect(border).toBe(before + 350);
    });

    it('a range that is purged before any of it was read is read in the archive', async () => {
      let [after, upTo] = [border, border + 60];
      const read = await entriesIn(purgingLog().log, { after, upTo });
      expect(read).toEqual(whole.entries.slice(after, upTo));
      [after, upTo] = [border, border + 60];
      const records = withArchivedRecords(purgingLog().records, store.log, store.open);
      expect(await recordsIn(records, after, upTo)).toEqual(whole.records.slice(after, upTo));
    });

    it('the records have no hole', async () => {
      const records = withArchivedRecords(purgingLog().records, store.log, store.open);
      const before = border;
      expect(await recordsIn(records, 0, end)).toEqual(whole.records);
      expect(border).toBeGreaterThan(before);
    });

    it('a history has no hole', async () => {
      const before = border;
      expect(await Array.fromAsync(purgingLog().log.history(open))).toEqual(whole.history);
      expect(border).toBe(before + 350);
    });
  });
});
