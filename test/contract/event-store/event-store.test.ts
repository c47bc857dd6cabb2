import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MalformedEvent } from '#events/codec.ts';
import { filterOf } from '#events/subjects.ts';
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

describe.each(eventLogs)('the event log ($adapter)', ({ open }) => {
  let opened: OpenedLog;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  describe('reading', () => {
    test('knows nothing of an aggregate without events', async () => {
      const session = aSession();
      expect(await opened.log.last(session)).toBeNull();
      expect(await opened.log.last(session, { fromLeader: true })).toBeNull();
      expect(await historyOf(opened.log, session)).toEqual([]);
      expect(await opened.log.lastSequence([filterOf(session)])).toBe(0);
    });

    test('gives back what was appended: data, state, cause and position', async () => {
      const session = aSession();
      const cause = { ...aCause(), causationId: 'event-before', traceparent: '00-ab-cd-01' };
      const event = requested(session, cause);
      const appended = await opened.log.append([change(0, event)]);
      const last = await opened.log.last(session, { fromLeader: true });
      expect(last).toEqual({ ...event, cause, sequence: last?.sequence });
      expect(last?.state).toEqual(creatingState(session));
      expect(appended).toEqual({ outcome: 'appended', sequences: [last?.sequence] });
      expect(await opened.log.last(session)).toEqual(last);
    });

    test('tells the last event and the whole history, oldest first', async () => {
      const session = aSession();
      const sequences = await appendEach(opened.log, session, 12);
      const history = await historyOf(opened.log, session);
      expect(history.map((event) => event.sequence)).toEqual(sequences);
      expect(history.map((event) => event.type)).toEqual([
        'session.requested',
        ...Array<string>(11).fill('session.accessed'),
      ]);
      expect(await opened.log.last(session)).toEqual(history.at(-1));
    });

    test('tells the newest sequence of some subjects and of all', async () => {
      const [older, newer] = [aSession(), aSession()];
      const first = await appendEach(opened.log, older, 3);
      const second = await appendEach(opened.log, newer, 3);
      expect(await opened.log.lastSequence([filterOf(older)])).toBe(first.at(-1));
      const both = [filterOf(newer), filterOf(older)];
      expect(await opened.log.lastSequence(both)).toBe(second.at(-1));
      expect(await opened.log.lastSequence()).toBe(second.at(-1));
    });
  });

  describe('appending', () => {
    test('refuses a decision on a state that is gone', async () => {
      const session = aSession();
      const sequences = await appendEach(opened.log, session, 3);
      const stale = [0, sequences[0] ?? 0, (sequences.at(-1) ?? 0) + 1];
      for (const expected of stale) {
        const appended = await opened.log.append([change(expected, accessed(session))]);
        expect(appended).toEqual({ outcome: 'conflict' });
      }
      expect(await historyOf(opened.log, session)).toHaveLength(3);
    });

    test('stores the changes of several aggregates together, in their order', async () => {
      const session = aSession();
      const cause = aCause();
      const appended = await opened.log.append([
        change(0, requested(session, cause), queued(session, cause)),
        change(0, slotReserved(session, cause)),
      ]);
      const history = await historyOf(opened.log, session);
      const ledger = await opened.log.last(ledgerOf(session));
      const sequences = [...history, ledger].map((event) => event?.sequence);
      expect(appended).toEqual({ outcome: 'appended', sequences });
      expect(history.map((event) => event.type)).toEqual(['session.requested', 'session.queued']);
      expect(sequences).toEqual([0, 1, 2].map((step) => (sequences[0] ?? 0) + step));
    });

    test('stores nothing of a batch when one of its aggregates has moved on', async () => {
      const session = aSession();
      await opened.log.append([change(0, slotReserved(session))]);
      const cause = aCause();
      const appended = await opened.log.append([
        change(0, requested(session, cause)),
        change(0, slotReserved(session, cause)),
      ]);
      expect(appended).toEqual({ outcome: 'conflict' });
      expect(await opened.log.last(session, { fromLeader: true })).toBeNull();
    });

    test('goes on from the sequences that an append gave', async () => {
      const session = aSession();
      const cause = aCause();
      const appended = await opened.log.append([
        change(0, requested(session, cause), accessed(session, 1, cause)),
        change(0, slotReserved(session, cause)),
      ]);
      const [, second = 0, third = 0] = appended.outcome === 'appended' ? appended.sequences : [];
      const next = aCause();
      const again = await opened.log.append([
        change(second, accessed(session, 2, next)),
        change(third, slotReserved(session, next)),
      ]);
      expect(again.outcome).toBe('appended');
    });

    test('recognises a command that it has stored before', async () => {
      const session = aSession();
      const single = [change(0, requested(session))];
      expect((await opened.log.append(single)).outcome).toBe('appended');
      expect(await opened.log.append(single)).toEqual({ outcome: 'repeated' });

      const another = aSession();
      const cause = aCause();
      const batch = [
        change(0, requested(another, cause), queued(another, cause)),
        change(0, slotReserved(another, cause)),
      ];
      expect((await opened.log.append(batch)).outcome).toBe('appended');
      expect(await opened.log.append(batch)).toEqual({ outcome: 'repeated' });
      expect(await historyOf(opened.log, another)).toHaveLength(2);
    });

    test('stores the events of several commands together, and knows them again by the first', async () => {
      const sessions = [aSession('org-of-groups'), aSession('org-of-groups')] as const;
      const causes = [aCause(), aCause()] as const;
      const [first, second] = sessions;
      const ledger = change(0, slotReserved(first, causes[0]), slotReserved(second, causes[1]));
      const changes = [
        change(0, requested(first, causes[0])),
        change(0, requested(second, causes[1])),
        ledger,
      ];
      const appended = await opened.log.append(changes);
      const lasts = await Promise.all(sessions.map((session) => opened.log.last(session)));
      expect(lasts.map((last) => last?.cause.commandId)).toEqual(
        causes.map(({ commandId }) => commandId),
      );
      const line = await opened.log.last(ledgerOf(first));
      expect(line?.cause.commandId).toBe(causes[1].commandId);
      const [start = 0] = appended.outcome === 'appended' ? appended.sequences : [];
      const sequences = [start, start + 1, start + 2, start + 3];
      expect(appended).toEqual({ outcome: 'appended', sequences });
      expect(await opened.log.append(changes)).toEqual({ outcome: 'repeated' });
      // Stale for the second alone: nothing of the first is stored either.
      const third = aSession('org-of-groups');
      const stale = [change(0, requested(third)), change(0, requested(second))];
      expect(await opened.log.append(stale)).toEqual({ outcome: 'conflict' });
      expect(await opened.log.last(third, { fromLeader: true })).toBeNull();
    });

    test('lets exactly one of 50 racers through', async () => {
      const session = aSession();
      const [sequence = 0] = await appendEach(opened.log, session, 1);
      const racers = Array.from({ length: 50 }, (_, minute) =>
        (minute % 2 === 0 ? opened.log : opened.other).append([
          change(sequence, accessed(session, minute)),
        ]),
      );
      const outcomes = (await Promise.all(racers)).map(({ outcome }) => outcome);
      expect(outcomes.filter((outcome) => outcome === 'appended')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === 'conflict')).toHaveLength(49);
      expect(await historyOf(opened.log, session)).toHaveLength(2);
    });

    test('lets exactly one of 20 racing batches through, whole', async () => {
      const sessions = Array.from({ length: 20 }, () => aSession('org-of-racing-batches'));
      const racers = sessions.map((session) => {
        const cause = aCause();
        return opened.log.append([
          change(0, requested(session, cause), queued(session, cause)),
          change(0, slotReserved(session, cause)),
        ]);
      });
      const outcomes = (await Promise.all(racers)).map(({ outcome }) => outcome);
      expect(outcomes.filter((outcome) => outcome === 'appended')).toHaveLength(1);
      const histories = await Promise.all(
        sessions.map((session) => historyOf(opened.log, session)),
      );
      const lengths = histories.map((history) => history.length);
      expect(lengths.filter((length) => length === 2)).toHaveLength(1);
      expect(lengths.filter((length) => length === 0)).toHaveLength(19);
    });

    test('refuses an event that does not fit its schema, and stores nothing', async () => {
      const session = aSession();
      const cause = aCause();
      const wrong = { ...queued(session, cause), state: { status: 'asleep' } };
      const changes = [change(0, requested(session, cause), wrong)];
      await expect(opened.log.append(changes)).rejects.toThrow(MalformedEvent);
      expect(await historyOf(opened.log, session)).toEqual([]);
    });

    test('refuses changes that break the contract', async () => {
      const session = aSession();
      const cause = aCause();
      const first = change(0, requested(session, cause));
      const broken = [
        [first, change(0, queued(session, cause))],
        [{ ...first, aggregate: aSession() }],
        [{ ...first, events: [] }],
        [],
      ];
      for (const changes of broken)
        await expect(opened.log.append(changes)).rejects.toThrow(RangeError);
      expect(await historyOf(opened.log, session)).toEqual([]);
    });
  });
});
