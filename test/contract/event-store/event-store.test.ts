import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MalformedEvent } from '#events/codec.ts';
import { streamFilter } from '#events/subjects.ts';
import {
  accessed,
  aCause,
  aSession,
  change,
  creatingState,
  ledgerOf,
  queued,
  requested,
  slotReserved,
} from '#test/support/events.fixture.ts';
import {
  appendEach,
  eventLogs,
  historyOf,
  type OpenedLog,
} from '#test/support/stores/event-stores.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

describe.each(eventLogs)('the event store ($adapter)', ({ open }) => {
  let opened: OpenedLog;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  describe('reading', () => {
    test('finds no aggregate without events', async () => {
      const session = aSession();
      expect(await opened.eventStore.readLast(session)).toBeNull();
      expect(await opened.eventStore.readLast(session, { fromLeader: true })).toBeNull();
      expect(await historyOf(opened.eventStore, session)).toEqual([]);
      expect(await lastOf(opened.eventStore, [streamFilter(session)])).toBe(0);
    });

    test('returns what was appended: data, state, metadata and sequence', async () => {
      const session = aSession();
      const metadata = { ...aCause(), causationId: 'event-before', traceparent: '00-ab-cd-01' };
      const event = requested(session, metadata);
      const appended = await opened.eventStore.append([change(0, event)]);
      const last = await opened.eventStore.readLast(session, { fromLeader: true });
      expect(last).toEqual({ ...event, metadata, sequence: last?.sequence });
      expect(last?.state).toEqual(creatingState(session));
      expect(appended).toEqual({ outcome: 'appended', sequences: [last?.sequence] });
      expect(await opened.eventStore.readLast(session)).toEqual(last);
    });

    test('returns the last event, and the whole history oldest first', async () => {
      const session = aSession();
      const sequences = await appendEach(opened.eventStore, session, 12);
      const history = await historyOf(opened.eventStore, session);
      expect(history.map((event) => event.sequence)).toEqual(sequences);
      expect(history.map((event) => event.type)).toEqual([
        'session.requested',
        ...Array<string>(11).fill('session.accessed'),
      ]);
      expect(await opened.eventStore.readLast(session)).toEqual(history.at(-1));
    });

    test('returns the history of some types, whether each came once or several times', async () => {
      const session = aSession();
      const { eventStore } = opened;
      const ofTypes = async (...types: string[]) => {
        const found = [];
        for await (const event of eventStore.history(session, { types: new Set(types) }))
          found.push(event);
        return found;
      };
      expect(await ofTypes('session.requested')).toEqual([]);
      const [first = 0] = await appendEach(eventStore, session, 1);
      await eventStore.append([change(first, queued(session))]);
      const alone = await historyOf(eventStore, session);
      expect(alone.map(({ type }) => type)).toEqual(['session.requested', 'session.queued']);
      expect(await ofTypes('session.queued', 'session.requested')).toEqual(alone);
      let last = alone.at(-1)?.sequence ?? 0;
      for (let times = 0; times < 3; times += 1) {
        await eventStore.append([change(last, accessed(session))]);
        last = (await historyOf(eventStore, session)).at(-1)?.sequence ?? 0;
      }
      const all = await historyOf(eventStore, session);
      expect(all.slice(0, 2)).toEqual(alone);
      expect(all.slice(2).map(({ type }) => type)).toEqual(Array(3).fill('session.accessed'));
      expect(await ofTypes('session.queued')).toEqual(all.slice(1, 2));
      expect(await ofTypes('session.accessed', 'session.queued')).toEqual(all.slice(1));
    });

    test('returns the newest sequence of some subjects and of all', async () => {
      const [older, newer] = [aSession(), aSession()];
      const first = await appendEach(opened.eventStore, older, 3);
      const second = await appendEach(opened.eventStore, newer, 3);
      expect(await lastOf(opened.eventStore, [streamFilter(older)])).toBe(first.at(-1));
      const both = [streamFilter(newer), streamFilter(older)];
      expect(await lastOf(opened.eventStore, both)).toBe(second.at(-1));
      expect(await opened.eventStore.lastSequence()).toBe(second.at(-1));
    });
  });

  describe('appending', () => {
    test('refuses a decision on an outdated state', async () => {
      const session = aSession();
      const sequences = await appendEach(opened.eventStore, session, 3);
      const stale = [0, sequences[0] ?? 0, (sequences.at(-1) ?? 0) + 1];
      for (const expected of stale) {
        const appended = await opened.eventStore.append([change(expected, accessed(session))]);
        expect(appended).toEqual({ outcome: 'conflict' });
      }
      expect(await historyOf(opened.eventStore, session)).toHaveLength(3);
    });

    test('stores the changes of several aggregates together, in their order', async () => {
      const session = aSession();
      const metadata = aCause();
      const appended = await opened.eventStore.append([
        change(0, requested(session, metadata), queued(session, metadata)),
        change(0, slotReserved(session, metadata)),
      ]);
      const history = await historyOf(opened.eventStore, session);
      const ledger = await opened.eventStore.readLast(ledgerOf(session));
      const sequences = [...history, ledger].map((event) => event?.sequence);
      expect(appended).toEqual({ outcome: 'appended', sequences });
      expect(history.map((event) => event.type)).toEqual(['session.requested', 'session.queued']);
      expect(sequences).toEqual([0, 1, 2].map((step) => (sequences[0] ?? 0) + step));
    });

    test('stores nothing of a batch if one of its aggregates has changed', async () => {
      const session = aSession();
      await opened.eventStore.append([change(0, slotReserved(session))]);
      const metadata = aCause();
      const appended = await opened.eventStore.append([
        change(0, requested(session, metadata)),
        change(0, slotReserved(session, metadata)),
      ]);
      expect(appended).toEqual({ outcome: 'conflict' });
      expect(await opened.eventStore.readLast(session, { fromLeader: true })).toBeNull();
    });

    test('accepts the sequences that an append returned for the next one', async () => {
      const session = aSession();
      const metadata = aCause();
      const appended = await opened.eventStore.append([
        change(0, requested(session, metadata), accessed(session, 1, metadata)),
        change(0, slotReserved(session, metadata)),
      ]);
      const [, second = 0, third = 0] = appended.outcome === 'appended' ? appended.sequences : [];
      const next = aCause();
      const again = await opened.eventStore.append([
        change(second, accessed(session, 2, next)),
        change(third, slotReserved(session, next)),
      ]);
      expect(again.outcome).toBe('appended');
    });

    test('has its end between two batches, also while one is being stored', async () => {
      const { eventStore, other } = opened;
      // So many that a look at the end meets one that is half stored.
      const batchSize = 60;
      const starts: number[] = [];
      const ends: number[] = [];
      const over = new AbortController();
      const looking = (async () => {
        while (!over.signal.aborted) ends.push(await other.lastSequence());
      })();
      for (let count = 0; count < 15; count += 1) {
        const metadata = aCause();
        const batch = Array.from({ length: batchSize }, () =>
          change(0, requested(aSession(), metadata)),
        );
        const appended = await eventStore.append(batch);
        starts.push(appended.outcome === 'appended' ? (appended.sequences[0] ?? 0) : 0);
      }
      over.abort();
      await looking;
      const isWithin = (end: number) =>
        starts.some((start) => end >= start && end < start + batchSize - 1);
      expect(ends.filter(isWithin)).toEqual([]);
      expect(new Set(ends).size).toBeGreaterThan(1);
    });

    test('recognises a command that it has stored before', async () => {
      const session = aSession();
      const single = [change(0, requested(session))];
      expect((await opened.eventStore.append(single)).outcome).toBe('appended');
      expect(await opened.eventStore.append(single)).toEqual({ outcome: 'duplicate' });

      const another = aSession();
      const metadata = aCause();
      const batch = [
        change(0, requested(another, metadata), queued(another, metadata)),
        change(0, slotReserved(another, metadata)),
      ];
      expect((await opened.eventStore.append(batch)).outcome).toBe('appended');
      expect(await opened.eventStore.append(batch)).toEqual({ outcome: 'duplicate' });
      expect(await historyOf(opened.eventStore, another)).toHaveLength(2);
    });

    test('stores the events of several commands together, and recognizes a repeat by the first', async () => {
      const sessions = [aSession('org-of-groups'), aSession('org-of-groups')] as const;
      const causes = [aCause(), aCause()] as const;
      const [first, second] = sessions;
      const ledger = change(0, slotReserved(first, causes[0]), slotReserved(second, causes[1]));
      const changes = [
        change(0, requested(first, causes[0])),
        change(0, requested(second, causes[1])),
        ledger,
      ];
      const appended = await opened.eventStore.append(changes);
      const lasts = await Promise.all(
        sessions.map((session) => opened.eventStore.readLast(session)),
      );
      expect(lasts.map((last) => last?.metadata.commandId)).toEqual(
        causes.map(({ commandId }) => commandId),
      );
      const line = await opened.eventStore.readLast(ledgerOf(first));
      expect(line?.metadata.commandId).toBe(causes[1].commandId);
      const [start = 0] = appended.outcome === 'appended' ? appended.sequences : [];
      const sequences = [start, start + 1, start + 2, start + 3];
      expect(appended).toEqual({ outcome: 'appended', sequences });
      expect(await opened.eventStore.append(changes)).toEqual({ outcome: 'duplicate' });
      // Outdated for the second change only: nothing of the first one is stored either.
      const third = aSession('org-of-groups');
      const stale = [change(0, requested(third)), change(0, requested(second))];
      expect(await opened.eventStore.append(stale)).toEqual({ outcome: 'conflict' });
      expect(await opened.eventStore.readLast(third, { fromLeader: true })).toBeNull();
    });

    test('accepts exactly one of 50 concurrent appends', async () => {
      const session = aSession();
      const [sequence = 0] = await appendEach(opened.eventStore, session, 1);
      const racers = Array.from({ length: 50 }, (_, minute) =>
        (minute % 2 === 0 ? opened.eventStore : opened.other).append([
          change(sequence, accessed(session, minute)),
        ]),
      );
      const outcomes = (await Promise.all(racers)).map(({ outcome }) => outcome);
      expect(outcomes.filter((outcome) => outcome === 'appended')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === 'conflict')).toHaveLength(49);
      expect(await historyOf(opened.eventStore, session)).toHaveLength(2);
    });

    test('accepts exactly one of 20 concurrent batches, as a whole', async () => {
      const sessions = Array.from({ length: 20 }, () => aSession('org-of-racing-batches'));
      const racers = sessions.map((session) => {
        const metadata = aCause();
        return opened.eventStore.append([
          change(0, requested(session, metadata), queued(session, metadata)),
          change(0, slotReserved(session, metadata)),
        ]);
      });
      const outcomes = (await Promise.all(racers)).map(({ outcome }) => outcome);
      expect(outcomes.filter((outcome) => outcome === 'appended')).toHaveLength(1);
      const histories = await Promise.all(
        sessions.map((session) => historyOf(opened.eventStore, session)),
      );
      const lengths = histories.map((history) => history.length);
      expect(lengths.filter((length) => length === 2)).toHaveLength(1);
      expect(lengths.filter((length) => length === 0)).toHaveLength(19);
    });

    test('refuses an event that does not fit its schema, and stores nothing', async () => {
      const session = aSession();
      const metadata = aCause();
      const wrong = { ...queued(session, metadata), state: { status: 'asleep' } };
      const changes = [change(0, requested(session, metadata), wrong)];
      await expect(opened.eventStore.append(changes)).rejects.toThrow(MalformedEvent);
      expect(await historyOf(opened.eventStore, session)).toEqual([]);
    });

    test('refuses changes that break the port’s contract', async () => {
      const session = aSession();
      const metadata = aCause();
      const first = change(0, requested(session, metadata));
      const broken = [
        [first, change(0, queued(session, metadata))],
        [{ ...first, aggregate: aSession() }],
        [{ ...first, events: [] }],
        [],
      ];
      for (const changes of broken)
        await expect(opened.eventStore.append(changes)).rejects.toThrow(RangeError);
      expect(await historyOf(opened.eventStore, session)).toEqual([]);
    });
  });
});
