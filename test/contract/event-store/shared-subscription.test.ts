import { setImmediate as turn } from 'node:timers/promises';
import { headers as newHeaders } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { encode } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { filterOf, filters, subjectOf } from '#events/subjects.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { throughOneReader } from '#src/event-store/shared-subscription.ts';
import { accessed, aSession, change, requested } from '#test/support/events.fixture.ts';
import { appendEach, followed, openRealLog } from '#test/support/stores/event-stores.ts';

/** A log that counts how often it is followed. */
function countedLog(): EventLog & { followers: () => number } {
  const log = createMemoryEventLog({});
  let followers = 0;
  return {
    ...log,
    follow(options) {
      followers += 1;
      return log.follow(options);
    },
    followers: () => followers,
  };
}

test('however many follow from the end, the log is read once', async () => {
  const counted = countedLog();
  await using log = await throughOneReader(counted);
  const hearing = Array.from({ length: 20 }, () =>
    followed(log, { subjects: filters.sessions, after: 0 }, 30),
  );
  const sequences = await appendEach(log, aSession(), 30);
  for (const batches of await Promise.all(hearing))
    expect(batches.flat().map(({ sequence }) => sequence)).toEqual(sequences);
  expect(counted.followers()).toBe(1);
});

test('a follower that fell behind what is kept reads what it missed, and joins again', async () => {
  const counted = countedLog();
  await using log = await throughOneReader(counted, { keptMin: 5 });
  const stop = new AbortController();
  const options = { subjects: filters.sessions, after: 0, batchMax: 3, signal: stop.signal };
  const batches = log.follow({ ...options, onMalformed: () => undefined })[Symbol.asyncIterator]();
  async function next(): Promise<number[]> {
    const { value } = await batches.next();
    return (value as RecordedEvent[] | undefined)?.map(({ sequence }) => sequence) ?? [];
  }
  const first = appendEach(log, aSession(), 2);
  const heard = await next();
  await first;
  // It does not take anything while these come.
  const missed = await appendEach(log, aSession(), 40);
  const last = missed.at(-1) ?? 0;
  while ((heard.at(-1) ?? 0) < last) heard.push(...(await next()));
  expect(heard).toEqual(Array.from({ length: last }, (_, index) => index + 1));
  expect(counted.followers()).toBe(2);
  const hearing = next();
  expect(await appendEach(log, aSession(), 1)).toEqual(await hearing);
  expect(counted.followers()).toBe(2);
  stop.abort();
});

test('what is older than its beginning is there for those who ask for it', async () => {
  const counted = countedLog();
  const session = aSession();
  const before = await appendEach(counted, session, 7);
  await appendEach(counted, aSession(), 3);
  await using log = await throughOneReader(counted);
  const hearing = followed(log, { subjects: [filterOf(session)], after: before[2] ?? 0 }, 4);
  expect((await hearing).flat().map(({ sequence }) => sequence)).toEqual(before.slice(3));
});

describe('events that cannot be read', () => {
  /** A log in which some cannot be: their follower hears of them before the rest of its read. */
  function spoiltLog(isSpoilt: (sequence: number) => boolean): EventLog {
    const log = createMemoryEventLog({});
    return {
      ...log,
      async *follow(options) {
        for await (const batch of log.follow(options)) {
          for (const { sequence, aggregate, type } of batch)
            if (isSpoilt(sequence))
              options.onMalformed({
                sequence,
                subject: subjectOf(aggregate, type),
                reason: 'spoilt',
              });
          const rest = batch.filter(({ sequence }) => !isSpoilt(sequence));
          if (rest.length > 0) yield rest;
        }
      },
    };
  }

  /** What a follower from the log's begin hears, in its order: `3`, or `3 unreadable`. */
  function listen(log: EventLog, subjects: readonly string[] = filters.all) {
    const stop = new AbortController();
    const heard: string[] = [];
    async function follow() {
      const onMalformed = ({ sequence }: { sequence: number }) =>
        void heard.push(`${sequence} unreadable`);
      const options = { subjects, after: 0, signal: stop.signal, onMalformed };
      for await (const batch of log.follow(options))
        heard.push(...batch.map(({ sequence }) => `${sequence}`));
    }
    const following = follow();
    return {
      heard,
      async [Symbol.asyncDispose]() {
        stop.abort();
        await following;
      },
    };
  }

  test.each([
    { where: 'before good ones', spoilt: [1, 2] },
    { where: 'between good ones', spoilt: [2, 4] },
    { where: 'after good ones', spoilt: [4, 5] },
    { where: 'with no good one', spoilt: [1, 2, 3, 4, 5] },
    { where: 'before, between and after good ones', spoilt: [1, 3, 5] },
  ])('that come in one read $where are told in their place, and no other is lost', async (one) => {
    const isSpoilt = (sequence: number) => one.spoilt.includes(sequence);
    await using log = await throughOneReader(spoiltLog(isSpoilt));
    await using waiting = listen(log);
    await using waitingToo = listen(log);
    await turn();

    const session = aSession();
    const rest = [1, 2, 3, 4].map((minute) => accessed(session, minute));
    await log.append([change(0, requested(session), ...rest)]);
    await using late = listen(log);
    const [other] = await appendEach(log, aSession(), 1);

    const expected = [1, 2, 3, 4, 5].map((sequence) =>
      isSpoilt(sequence) ? `${sequence} unreadable` : `${sequence}`,
    );
    for (const { heard } of [waiting, waitingToo, late]) {
      await expect.poll(() => heard).toContain(`${other}`);
      expect(heard).toEqual([...expected, `${other}`]);
    }
  });

  test('are told though nothing comes behind them', async () => {
    await using log = await throughOneReader(spoiltLog((sequence) => sequence === 1));
    await using waiting = listen(log);
    await turn();
    await appendEach(log, aSession(), 1);
    await expect.poll(() => waiting.heard).toEqual(['1 unreadable']);
  });

  test('cost no follower of a real log a good one', async () => {
    await using real = await openRealLog();
    await using log = await throughOneReader(real.log);
    const session = aSession();
    await using waiting = listen(log, [filterOf(session)]);
    const { subject, headers, body } = encode(requested(session));
    const all = newHeaders();
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    for (let round = 1; round <= 10; round += 1) {
      const publish = (text: Uint8Array | string) =>
        real.connection.js.publish(subject, text, { headers: all });
      await Promise.all([publish(body), publish('not an event'), publish(body)]);
      await expect.poll(() => waiting.heard.at(-1)).toBe(`${3 * round}`);
    }
    expect(waiting.heard).toEqual(
      Array.from({ length: 30 }, (_, at) => (at % 3 === 1 ? `${at + 1} unreadable` : `${at + 1}`)),
    );
  });
});
