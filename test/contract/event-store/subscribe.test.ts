import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { filterOf, filters } from '#events/subjects.ts';
import { accessed, aSession, change } from '#test/support/events.fixture.ts';
import {
  appendEach,
  eventLogs,
  followed,
  historyOf,
  type OpenedLog,
} from '#test/support/stores/event-stores.ts';

describe.each(eventLogs)('following the event log ($adapter)', ({ open }) => {
  let opened: OpenedLog;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('tells the whole log in order, without gap', async () => {
    await appendEach(opened.log, aSession(), 5);
    const end = await opened.log.lastSequence();
    const heard = (await followed(opened.log, { subjects: filters.all, after: 0 }, end)).flat();
    expect(heard.map((event) => event.sequence)).toEqual(
      Array.from({ length: end }, (_, index) => index + 1),
    );
  });

  test('tells only what the subjects match, from behind the given sequence', async () => {
    const session = aSession();
    const [first = 0, ...others] = await appendEach(opened.log, session, 7);
    await appendEach(opened.log, aSession(), 2);
    const subjects = [filterOf(session)];
    const heard = (await followed(opened.log, { subjects, after: first }, 6)).flat();
    expect(heard.map((event) => event.sequence)).toEqual(others);
  });

  test('tells events as they are appended, to every follower, in bounded batches', async () => {
    const session = aSession();
    const subjects = [filterOf(session)];
    const options = { subjects, after: await opened.log.lastSequence(), batchMax: 4 };
    const hearing = [opened.log, opened.log, opened.other].map((log) => followed(log, options, 40));
    const sequences = await appendEach(opened.log, session, 40);
    for (const batches of await Promise.all(hearing)) {
      expect(batches.flat().map((event) => event.sequence)).toEqual(sequences);
      expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(4);
      expect(batches.every((batch) => batch.length > 0)).toBe(true);
    }
  });

  test("begins with what comes from now on where asked for the 'end'", async () => {
    const session = aSession();
    const before = await appendEach(opened.log, session, 3);
    const subjects = [filterOf(session)];
    const heardAll = new AbortController();
    const hearing = followed(opened.log, { subjects, after: 'end' }, 2);
    void hearing.finally(() => heardAll.abort());
    let expected = before.at(-1) ?? 0;
    while (!heardAll.signal.aborted) {
      const appended = await opened.log.append([change(expected, accessed(session))]);
      expected = appended.outcome === 'appended' ? (appended.sequences[0] ?? 0) : 0;
      await new Promise(setImmediate);
    }
    const heard = (await hearing).flat().map((event) => event.sequence);
    const all = (await historyOf(opened.log, session)).map((event) => event.sequence);
    const start = all.indexOf(heard[0] ?? 0);
    expect(start).toBeGreaterThanOrEqual(before.length);
    expect(heard).toEqual(all.slice(start, start + heard.length));
  });

  test('leaves out, where it may, only what a later event of the aggregate stands for', async () => {
    const { log } = opened;
    const [one, other] = [aSession(), aSession()];
    const after = await log.lastSequence();
    const appended = [...(await appendEach(log, one, 6)), ...(await appendEach(log, other, 2))];
    const last = appended.at(-1) ?? 0;
    for (const may of [true, false]) {
      const left = new Map<number, number>();
      const mayLeaveOut = (sequence: number, by: number) => {
        if (may) left.set(sequence, by);
        return may;
      };
      const options = { subjects: filters.all, after, mayLeaveOut, batchMax: 4_000 };
      const heard: number[] = [];
      const { signal } = new AbortController();
      for await (const batch of log.follow({ ...options, signal, onMalformed() {} })) {
        heard.push(...batch.map((event) => event.sequence));
        if (heard.at(-1) === last) break;
      }
      expect([...heard, ...left.keys()].toSorted((a, b) => a - b)).toEqual(appended);
      expect(heard).toEqual(heard.toSorted((a, b) => a - b));
      for (const [sequence, by] of left) {
        expect(heard).toContain(by);
        expect(by).toBeGreaterThan(sequence);
        expect(appended.indexOf(sequence) < 6).toBe(appended.indexOf(by) < 6);
      }
    }
  });

  test('ends as soon as the signal aborts, idle or not', async () => {
    const session = aSession();
    await appendEach(opened.log, session, 1);
    const stop = new AbortController();
    const options = { subjects: [filterOf(session)], signal: stop.signal, onMalformed() {} };
    let batches = 0;
    for await (const batch of opened.log.follow({ ...options, after: 0 })) {
      batches += batch.length;
      setImmediate(() => stop.abort());
    }
    expect(batches).toBe(1);
    const late = opened.log.follow({ ...options, after: 0 })[Symbol.asyncIterator]();
    expect((await late.next()).done).toBe(true);
  });
});
