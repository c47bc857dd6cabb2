import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createLagMeter } from '#projections/runner/lag.ts';
import { projectionId, type Projection } from '#projections/projection.ts';
import { retryDeadLetter } from '#projections/maintenance/retry-dead-letter.ts';
import { startProjections, type ProjectionRunner } from '#projections/runner/run-projections.ts';
import type { RedisViews } from '#projections/store/redis/redis-views.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import { accessed, MINUTE, requested, T0 } from '#test/support/examples.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { record, sessionRef } from '#test/support/history.ts';
import {
  eventStoreOfSessions,
  lastEvents,
  eventually,
  expectSameAsFreshFold,
  untilCheckpoint,
} from '#test/support/projector.ts';
import { reachableViews } from '#test/support/stores/view-stores.ts';

let redis: RealRedis;
let views: RedisViews;
let deadLetters: DeadLetterStore;
let removed: string[];
let failures: unknown[];
beforeEach(async () => {
  redis = await startRedis();
  views = await reachableViews({ url: redis.url });
  deadLetters = createMemoryDeadLetters();
  removed = [];
  failures = [];
});
afterEach(async () => {
  await views[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

function running(eventStore: EventStore, ...projections: Projection<unknown>[]): ProjectionRunner {
  const onRemoved = (store: string) => removed.push(store);
  const onSourceFailure = (error: unknown) => failures.push(error);
  const callbacks = { onDeadLetter() {}, onUnknown() {}, onRemoved, onSourceFailure };
  return startProjections({ projections, eventStore, views, deadLetters, ...callbacks });
}

/** The same projection with other views. */
const lastEvents2: typeof lastEvents = {
  ...lastEvents,
  version: 2,
  view: (event) => ({ status: 'of version 2', last: event.sequence }),
};

describe('a new version of a projection', () => {
  test('is built beside the old one, which is removed once no process uses it', async () => {
    const log = await eventStoreOfSessions(50);
    const old = running(log, lastEvents);
    await untilCheckpoint(lastEvents, views, 200);
    await vi.waitUntil(async () => (await views.stores()).length === 1, eventually);
    await using _ = running(log, lastEvents2);
    await untilCheckpoint(lastEvents2, views, 200);
    await record<'session'>(log, sessionRef('s1'), accessed(T0 + 9 * MINUTE));
    await untilCheckpoint(lastEvents2, views, 201);
    // Readers of the old version are still served.
    await untilCheckpoint(lastEvents, views, 201);
    expect(await views.read(projectionId(lastEvents), 's1')).toContain('"active","last":201');
    expect(await views.read(projectionId(lastEvents2), 's1')).toContain(
      '"of version 2","last":201',
    );
    await deadLetters.add({
      by: projectionId(lastEvents),
      sequence: 7,
      subject: 's',
      reason: 'r',
    });
    await old[Symbol.asyncDispose]();
    await vi.waitUntil(() => removed.includes(projectionId(lastEvents)), eventually);
    await vi.waitUntil(async () => (await deadLetters.list()).length === 0, eventually);
    // All keys but those of the lists of the next projection of that name.
    const left = await redis.command('KEYS', `${projectionId(lastEvents)}*`);
    expect(left.match(/last-events\S*/g)).toEqual([`${projectionId(lastEvents)}:lists`]);
    expect(await views.checkpoint(projectionId(lastEvents2))).toBe(201);
  });

  test('does not remove a newer one', async () => {
    const log = await eventStoreOfSessions(5);
    await views.renew(projectionId(lastEvents2), 1);
    await views.renew('last-events:v1:next', 1);
    await views.write('last-events:v1:next', { after: 0, upTo: 3, writes: [] });
    await views.renew('another:v1', 1);
    await using _ = running(log, lastEvents);
    await vi.waitUntil(() => removed.length > 0, eventually);
    expect(removed).toEqual(['last-events:v1:next']);
    const left = (await views.stores()).map(({ projection }) => projection);
    expect(left.toSorted()).toEqual([
      'another:v1',
      projectionId(lastEvents),
      projectionId(lastEvents2),
    ]);
  });
});

describe('a store that does not match the event store', () => {
  test('because it is ahead, is built again', async () => {
    const log = await eventStoreOfSessions(3);
    await views.write(projectionId(lastEvents), { after: 0, upTo: 900, writes: [] });
    await using _ = running(log, lastEvents);
    await vi.waitUntil(
      async () => (await views.checkpoint(projectionId(lastEvents))) === 12,
      eventually,
    );
    await expectSameAsFreshFold(lastEvents, views, log);
  });

  test('because the event store was replaced by one of any length, is built again', async () => {
    const first = await eventStoreOfSessions(3);
    const before = running(first, lastEvents);
    await untilCheckpoint(lastEvents, views, 12);
    await before[Symbol.asyncDispose]();
    const second = await eventStoreOfSessions(0);
    for (let n = 0; n < 20; n += 1)
      await record<'session'>(second, sessionRef(`t${n}`), requested());
    await using _ = running(second, lastEvents);
    await vi.waitUntil(
      async () => (await views.checkpoint(projectionId(lastEvents))) === 20,
      eventually,
    );
    await expectSameAsFreshFold(lastEvents, views, second);
    expect(await views.read(projectionId(lastEvents), 's1')).toBeNull();
  });

  test('because the event store was wiped during the subscription, is built again', async () => {
    let log = await eventStoreOfSessions(3);
    const wiped: EventStore = new Proxy(log, {
      get: (_, name) => Reflect.get(log, name) as unknown,
    });
    await using _ = running(wiped, lastEvents);
    await untilCheckpoint(lastEvents, views, 12);
    log = await eventStoreOfSessions(1);
    await vi.waitUntil(
      async () => (await views.checkpoint(projectionId(lastEvents))) === 4,
      eventually,
    );
    await expectSameAsFreshFold(lastEvents, views, log);
  });
});

test('an unexpected error of the event store is reported and the call retried', async () => {
  const log = await eventStoreOfSessions(3);
  let isOdd = true;
  const answer = new Error('stream not found');
  const oddly = <Answer>(ask: () => Promise<Answer>) => (isOdd ? Promise.reject(answer) : ask());
  const odd: EventStore = {
    ...log,
    lastSequence: () => oddly(() => log.lastSequence()),
    info: () => oddly(() => log.info()),
  };
  await using projecting = running(odd, lastEvents);
  await vi.waitUntil(() => projecting.status()[0]?.mode === 'waiting-for-log', eventually);
  isOdd = false;
  await untilCheckpoint(lastEvents, views, 12);
  isOdd = true;
  await vi.waitUntil(() => projecting.status()[0]?.mode === 'waiting-for-log', eventually);
  isOdd = false;
  await record<'session'>(log, sessionRef('more'), requested());
  await untilCheckpoint(lastEvents, views, 13);
  await expectSameAsFreshFold(lastEvents, views, log);
  expect(failures).toContain(answer);
});

describe('the lag', () => {
  test('is 0 once all events are folded, and grows while the store is unavailable', async () => {
    const log = await eventStoreOfSessions(3);
    await using projecting = running(log, lastEvents);
    await untilCheckpoint(lastEvents, views, 12);
    await vi.waitUntil(() => projecting.status()[0]?.lag.events === 0, eventually);
    await redis.kill();
    await record<'session'>(log, sessionRef('more'), requested());
    await vi.waitUntil(() => projecting.status()[0]?.mode === 'waiting-for-store', eventually);
    await vi.waitUntil(() => (projecting.status()[0]?.lag.seconds ?? 0) > 0.5, eventually);
    expect(projecting.status()).toMatchObject([
      { projection: projectionId(lastEvents), mode: 'waiting-for-store', lag: { events: 1 } },
    ]);
    await redis.restart();
    await vi.waitUntil(() => projecting.status()[0]?.lag.seconds === 0, eventually);
  });

  test('is the age of the oldest sample that the checkpoint has not reached', () => {
    let now = 0;
    const meter = createLagMeter(() => now);
    meter.observeEnd(5);
    expect(meter.lag()).toEqual({ events: 5, seconds: 0 });
    for (now = 1_000; now <= 3_600_000; now += 1_000) meter.observeEnd(5 + now / 1_000);
    expect(meter.lag()).toEqual({ events: 3_605, seconds: 3_601 });
    meter.observeCheckpoint(3_600);
    expect(meter.lag()).toEqual({ events: 5, seconds: 5 });
    meter.observeCheckpoint(3_605);
    expect(meter.lag()).toEqual({ events: 0, seconds: 0 });
  });
});

describe('the retry of a dead letter', () => {
  let isBrittle: boolean;
  const brittle: typeof lastEvents = {
    ...lastEvents,
    view(event) {
      if (isBrittle && event.sequence === 9) throw new Error('not like this');
      return lastEvents.view(event);
    },
  };
  async function retrying(eventStore: EventStore) {
    const [event] = await deadLetters.list();
    if (event === undefined) throw new Error('there is no dead letter');
    const { signal } = new AbortController();
    return retryDeadLetter({ projection: brittle, event, eventStore, views, deadLetters, signal });
  }

  test('keeps it while the fold fails, and folds the event in its place afterwards', async () => {
    isBrittle = true;
    const log = await eventStoreOfSessions(2);
    await record<'session'>(log, sessionRef('s1'), accessed(T0 + 9 * MINUTE));
    await using _ = running(log, brittle);
    await untilCheckpoint(brittle, views, 9);
    expect(await views.read(projectionId(brittle), 's1')).toBe('{"status":"active","last":8}');
    expect(await retrying(log)).toEqual({ outcome: 'fails', reason: 'not like this' });
    expect(await deadLetters.list()).toHaveLength(1);
    isBrittle = false;
    expect(await retrying(log)).toEqual({ outcome: 'mended' });
    expect(await deadLetters.list()).toEqual([]);
    expect(await views.read(projectionId(brittle), 's1')).toBe('{"status":"active","last":9}');
    expect(await views.counts(projectionId(brittle), ['status/active'])).toEqual([2]);
  });
});
