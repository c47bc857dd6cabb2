import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { streamFilter, filters } from '#events/subjects.ts';
import { accessed, aSession, change } from '#test/support/events.fixture.ts';
import {
  appendEach,
  appendOne,
  eventLogs,
  followed,
  historyOf,
  type OpenedLog,
} from '#test/support/stores/event-stores.ts';

describe.each(eventLogs)('a subscription to the event store ($adapter)', ({ open }) => {
  let opened: OpenedLog;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('yields all events in order, without gap', async () => {
    await appendEach(opened.eventStore, aSession(), 5);
    const end = await opened.eventStore.lastSequence();
    const received = (
      await followed(opened.eventStore, { subjects: filters.all, after: 0 }, end)
    ).flat();
    expect(received.map((event) => event.sequence)).toEqual(
      Array.from({ length: end }, (_, index) => index + 1),
    );
  });

  test('yields only events of the subjects, after the given sequence', async () => {
    const session = aSession();
    const [first = 0, ...others] = await appendEach(opened.eventStore, session, 7);
    await appendEach(opened.eventStore, aSession(), 2);
    const subjects = [streamFilter(session)];
    const received = (await followed(opened.eventStore, { subjects, after: first }, 6)).flat();
    expect(received.map((event) => event.sequence)).toEqual(others);
  });

  test('yields events as they are appended, to every subscriber, in bounded batches', async () => {
    const session = aSession();
    const subjects = [streamFilter(session)];
    const options = { subjects, after: await opened.eventStore.lastSequence(), batchMax: 4 };
    const hearing = [opened.eventStore, opened.eventStore, opened.other].map((eventStore) =>
      followed(eventStore, options, 40),
    );
    const sequences = await appendEach(opened.eventStore, session, 40);
    for (const batches of await Promise.all(hearing)) {
      expect(batches.flat().map((event) => event.sequence)).toEqual(sequences);
      expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(4);
      expect(batches.every((batch) => batch.length > 0)).toBe(true);
    }
  });

  test("begins with the next event if asked for the 'end'", async () => {
    const session = aSession();
    const before = await appendEach(opened.eventStore, session, 3);
    const subjects = [streamFilter(session)];
    const heardAll = new AbortController();
    const hearing = followed(opened.eventStore, { subjects, after: 'end' }, 2);
    void hearing.finally(() => heardAll.abort());
    let expected = before.at(-1) ?? 0;
    while (!heardAll.signal.aborted) {
      expected = await appendOne(opened.eventStore, change(expected, accessed(session)));
      await new Promise(setImmediate);
    }
    const received = (await hearing).flat().map((event) => event.sequence);
    const all = (await historyOf(opened.eventStore, session)).map((event) => event.sequence);
    const start = all.indexOf(received[0] ?? 0);
    expect(start).toBeGreaterThanOrEqual(before.length);
    expect(received).toEqual(all.slice(start, start + received.length));
  });

  test('reports its position past the events of other subjects', async () => {
    const { eventStore } = opened;
    const session = aSession();
    const subjects = [streamFilter(session)];
    const own = await appendEach(eventStore, session, 3);
    await appendEach(eventStore, aSession(), 2);
    const ended = new AbortController();
    const received: number[] = [];
    const positions: number[] = [];
    const reached = Promise.withResolvers<void>();
    let target = await eventStore.lastSequence();
    const subscription = eventStore.subscribe({
      subjects,
      after: 0,
      signal: ended.signal,
      onPosition(sequence) {
        // Every matching event up to there has been received.
        expect(own.filter((one) => one <= sequence && !received.includes(one))).toEqual([]);
        positions.push(sequence);
        if (sequence >= target) reached.resolve();
      },
      onUnreadable: ({ reason }) => expect.fail(reason),
    });
    const reading = (async () => {
      for await (const batch of subscription) received.push(...batch.map((one) => one.sequence));
    })();
    await reached.promise;
    expect(received).toEqual(own);
    expect(positions).toEqual(positions.toSorted((one, other) => one - other));
    target = Infinity;
    ended.abort();
    await reading;
  });

  test('skips, if allowed, only events that a later one of the aggregate supersedes', async () => {
    const { eventStore } = opened;
    const [one, other] = [aSession(), aSession()];
    const after = await eventStore.lastSequence();
    const appended = [
      ...(await appendEach(eventStore, one, 6)),
      ...(await appendEach(eventStore, other, 2)),
    ];
    const last = appended.at(-1) ?? 0;
    for (const may of [true, false]) {
      const left = new Map<number, number>();
      const canSkip = (sequence: number, by: number) => {
        if (may) left.set(sequence, by);
        return may;
      };
      const options = { subjects: filters.all, after, canSkip, batchMax: 4_000 };
      const received: number[] = [];
      const { signal } = new AbortController();
      for await (const batch of eventStore.subscribe({ ...options, signal, onUnreadable() {} })) {
        received.push(...batch.map((event) => event.sequence));
        if (received.at(-1) === last) break;
      }
      expect([...received, ...left.keys()].toSorted((a, b) => a - b)).toEqual(appended);
      expect(received).toEqual(received.toSorted((a, b) => a - b));
      for (const [sequence, by] of left) {
        expect(received).toContain(by);
        expect(by).toBeGreaterThan(sequence);
        expect(appended.indexOf(sequence) < 6).toBe(appended.indexOf(by) < 6);
      }
    }
  });

  test('ends as soon as the signal aborts, idle or not', async () => {
    const session = aSession();
    await appendEach(opened.eventStore, session, 1);
    const stop = new AbortController();
    const options = { subjects: [streamFilter(session)], signal: stop.signal, onUnreadable() {} };
    let batches = 0;
    for await (const batch of opened.eventStore.subscribe({ ...options, after: 0 })) {
      batches += batch.length;
      setImmediate(() => stop.abort());
    }
    expect(batches).toBe(1);
    const late = opened.eventStore.subscribe({ ...options, after: 0 })[Symbol.asyncIterator]();
    expect((await late.next()).done).toBe(true);
  });
});
