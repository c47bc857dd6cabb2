import { setImmediate as turn } from 'node:timers/promises';
import { headers as newHeaders } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { encode } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { streamFilter, filters, subjectOf } from '#events/subjects.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { withSharedSubscription } from '#src/kernel/event-store/shared-subscription.ts';
import { accessed, aSession, change, requested } from '#test/support/events.fixture.ts';
import { appendEach, followed, openRealLog } from '#test/support/stores/event-stores.ts';

/** An event store that counts its subscriptions and reads. */
function countedLog(): EventStore & { readers: () => number } {
  const eventStore = createMemoryEventStore();
  let readers = 0;
  return {
    ...eventStore,
    read(options) {
      readers += 1;
      return eventStore.read(options);
    },
    subscribe(options) {
      readers += 1;
      return eventStore.subscribe(options);
    },
    readers: () => readers,
  };
}

test('however many subscribers there are, the store is read once', async () => {
  const counted = countedLog();
  await using log = await withSharedSubscription(counted);
  const hearing = Array.from({ length: 20 }, () =>
    followed(log, { subjects: filters.sessions, after: 0 }, 30),
  );
  const sequences = await appendEach(log, aSession(), 30);
  for (const batches of await Promise.all(hearing))
    expect(batches.flat().map(({ sequence }) => sequence)).toEqual(sequences);
  expect(counted.readers()).toBe(1);
});

test('one reader of some subjects receives those alone, and refuses subscriptions to others', async () => {
  const store = createMemoryEventStore();
  const asked: (readonly string[])[] = [];
  const subscribe: EventStore['subscribe'] = (options) => {
    asked.push(options.subjects);
    return store.subscribe(options);
  };
  const subjects = [...filters.ledgersAndSessions, ...filters.servers];
  await using log = await withSharedSubscription({ ...store, subscribe }, { subjects });
  const stop = new AbortController();
  const given = { after: 0, signal: stop.signal, onUnreadable: () => undefined };
  const one = aSession();
  for (const wanted of [filters.all, filters.fleet, filters.workloads, ['evt.>']]) {
    const batches = log.subscribe({ ...given, subjects: wanted })[Symbol.asyncIterator]();
    await expect(batches.next()).rejects.toThrow('does not follow');
  }
  const followers = [filters.sessions, [streamFilter(one)]].map((wanted) =>
    followed(log, { subjects: wanted, after: 0 }, 2),
  );
  const sequences = await appendEach(log, one, 2);
  for (const batches of await Promise.all(followers))
    expect(batches.flat().map(({ sequence }) => sequence)).toEqual(sequences);
  expect(asked).toEqual([subjects]);
});

test('a subscriber that fell behind the kept events reads what it missed, and joins again', async () => {
  const counted = countedLog();
  await using log = await withSharedSubscription(counted, { keptMin: 5 });
  const stop = new AbortController();
  const options = { subjects: filters.sessions, after: 0, batchMax: 3, signal: stop.signal };
  const subscription = log.subscribe({ ...options, onUnreadable: () => undefined });
  const batches = subscription[Symbol.asyncIterator]();
  async function next(): Promise<number[]> {
    const { value } = await batches.next();
    return (value as RecordedEvent[] | undefined)?.map(({ sequence }) => sequence) ?? [];
  }
  const first = appendEach(log, aSession(), 2);
  const received = await next();
  await first;
  // The subscriber takes nothing while these arrive.
  const missed = await appendEach(log, aSession(), 40);
  const last = missed.at(-1) ?? 0;
  while ((received.at(-1) ?? 0) < last) received.push(...(await next()));
  expect(received).toEqual(Array.from({ length: last }, (_, index) => index + 1));
  expect(counted.readers()).toBe(2);
  const hearing = next();
  expect(await appendEach(log, aSession(), 1)).toEqual(await hearing);
  expect(counted.readers()).toBe(2);
  stop.abort();
});

test('events older than the shared reader’s start are read for a subscriber that asks for them', async () => {
  const counted = countedLog();
  const session = aSession();
  const before = await appendEach(counted, session, 7);
  await appendEach(counted, aSession(), 3);
  await using log = await withSharedSubscription(counted);
  const hearing = followed(log, { subjects: [streamFilter(session)], after: before[2] ?? 0 }, 4);
  expect((await hearing).flat().map(({ sequence }) => sequence)).toEqual(before.slice(3));
});

describe('events that cannot be decoded', () => {
  /**
   * An event store with undecodable events: its subscriber gets them before the rest of its read.
   */
  function spoiltLog(isSpoilt: (sequence: number) => boolean): EventStore {
    const eventStore = createMemoryEventStore();
    return {
      ...eventStore,
      async *subscribe(options) {
        for await (const batch of eventStore.subscribe(options)) {
          for (const { sequence, aggregate, type } of batch)
            if (isSpoilt(sequence))
              options.onUnreadable({
                sequence,
                subject: subjectOf(aggregate, type),
                reason: 'spoilt',
                kind: 'malformed',
              });
          const rest = batch.filter(({ sequence }) => !isSpoilt(sequence));
          if (rest.length > 0) yield rest;
        }
      },
    };
  }

  /** What a subscriber from the beginning receives, in its order: `3`, or `3 unreadable`. */
  function listen(eventStore: EventStore, subjects: readonly string[] = filters.all) {
    const stop = new AbortController();
    const received: string[] = [];
    async function follow() {
      const onUnreadable = ({ sequence }: { sequence: number }) =>
        void received.push(`${sequence} unreadable`);
      const options = { subjects, after: 0, signal: stop.signal, onUnreadable };
      for await (const batch of eventStore.subscribe(options))
        received.push(...batch.map(({ sequence }) => `${sequence}`));
    }
    const following = follow();
    return {
      received,
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
  ])('in one read $where are reported in their place, and no other is lost', async (one) => {
    const isSpoilt = (sequence: number) => one.spoilt.includes(sequence);
    await using log = await withSharedSubscription(spoiltLog(isSpoilt));
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
    for (const { received } of [waiting, waitingToo, late]) {
      await expect.poll(() => received).toContain(`${other}`);
      expect(received).toEqual([...expected, `${other}`]);
    }
  });

  test('are reported though no event follows them', async () => {
    await using log = await withSharedSubscription(spoiltLog((sequence) => sequence === 1));
    await using waiting = listen(log);
    await turn();
    await appendEach(log, aSession(), 1);
    await expect.poll(() => waiting.received).toEqual(['1 unreadable']);
  });

  test('cost no subscriber of a real store a good event', async () => {
    await using real = await openRealLog();
    await using log = await withSharedSubscription(real.eventStore);
    const session = aSession();
    await using waiting = listen(log, [streamFilter(session)]);
    const { subject, headers, body } = encode(requested(session));
    const all = newHeaders();
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    for (let round = 1; round <= 10; round += 1) {
      const publish = (text: Uint8Array | string) =>
        real.connection.js.publish(subject, text, { headers: all });
      await Promise.all([publish(body), publish('not an event'), publish(body)]);
      await expect.poll(() => waiting.received.at(-1)).toBe(`${3 * round}`);
    }
    expect(waiting.received).toEqual(
      Array.from({ length: 30 }, (_, at) => (at % 3 === 1 ? `${at + 1} unreadable` : `${at + 1}`)),
    );
  });
});
