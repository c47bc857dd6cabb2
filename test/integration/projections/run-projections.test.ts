import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import { createLagMeter } from '#projections/runner/lag.ts';
import { idOf, type Projection } from '#projections/projection.ts';
import { retryParked } from '#projections/maintenance/retry-dead-letter.ts';
import { runProjections, type Projecting } from '#projections/runner/run-projections.ts';
import { createRedisViews, type RedisViews } from '#projections/store/redis/redis-views.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { createMemoryParked } from '#src/messaging/dead-letters.memory.ts';
import type { ParkedEvents } from '#src/messaging/dead-letters.ts';
import { accessed, MINUTE, requested, T0 } from '#test/support/examples.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { record, sessionRef } from '#test/support/history.ts';
import {
  aLogOf,
  eventCounts,
  eventually,
  expectAsOfOneFold,
  untilFolded,
} from '#test/support/projector.ts';

let redis: RealRedis;
let views: RedisViews;
let parked: ParkedEvents;
let removed: string[];
let failures: unknown[];
beforeEach(async () => {
  redis = await startRedis();
  views = await createRedisViews({ url: redis.url });
  parked = createMemoryParked();
  removed = [];
  failures = [];
});
afterEach(async () => {
  await views[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

function running(log: EventLog, ...projections: Projection<unknown>[]): Projecting {
  const onRemoved = (store: string) => removed.push(store);
  const onLogFailure = (error: unknown) => failures.push(error);
  const told = { onParked() {}, onRemoved, onLogFailure };
  return runProjections({ projections, log, views, parked, ...told });
}

/** The same, counted otherwise. */
const counted2: typeof eventCounts = {
  ...eventCounts,
  version: 2,
  evolve: (view, event) => ({ events: (view?.events ?? 0) + 10, last: event.sequence }),
};

describe('a new version of a projection', () => {
  test('is folded beside the old one, which goes once no process keeps it', async () => {
    const log = await aLogOf(50);
    const old = running(log, eventCounts);
    await untilFolded(eventCounts, views, 200);
    await vi.waitUntil(async () => (await views.stores()).length === 1, eventually);
    await using _ = running(log, counted2);
    await untilFolded(counted2, views, 200);
    await record<'session'>(log, sessionRef('s1'), accessed(T0 + 9 * MINUTE));
    await untilFolded(counted2, views, 201);
    // Those who still read the old one are served.
    await untilFolded(eventCounts, views, 201);
    expect(await views.read(idOf(eventCounts), 's1')).toContain('"events":5');
    expect(await views.read(idOf(counted2), 's1')).toContain('"events":50');
    await parked.park({ by: idOf(eventCounts), sequence: 7, subject: 's', reason: 'r' });
    await old[Symbol.asyncDispose]();
    await vi.waitUntil(() => removed.includes(idOf(eventCounts)), eventually);
    await vi.waitUntil(async () => (await parked.list()).length === 0, eventually);
    // All but where the lists of the next one of that name would begin.
    const left = await redis.command('KEYS', `${idOf(eventCounts)}*`);
    expect(left.match(/event-counts\S*/g)).toEqual([`${idOf(eventCounts)}:lists`]);
    expect(await views.checkpoint(idOf(counted2))).toBe(201);
  });

  test('does not take the place of a newer one', async () => {
    const log = await aLogOf(5);
    await views.keep(idOf(counted2), 1);
    await views.keep('event-counts:v1:next', 1);
    await views.write('event-counts:v1:next', { after: 0, upTo: 3, writes: [] });
    await views.keep('another:v1', 1);
    await using _ = running(log, eventCounts);
    await vi.waitUntil(() => removed.length > 0, eventually);
    expect(removed).toEqual(['event-counts:v1:next']);
    const left = (await views.stores()).map(({ projection }) => projection);
    expect(left.toSorted()).toEqual(['another:v1', idOf(eventCounts), idOf(counted2)]);
  });
});

describe('a store that is not of the log', () => {
  test('because it is ahead of it, is folded anew', async () => {
    const log = await aLogOf(3);
    await views.write(idOf(eventCounts), { after: 0, upTo: 900, writes: [] });
    await using _ = running(log, eventCounts);
    await vi.waitUntil(async () => (await views.checkpoint(idOf(eventCounts))) === 12, eventually);
    await expectAsOfOneFold(eventCounts, views, log);
  });

  test('because the log was made anew in its place, is folded anew, however long that is', async () => {
    const first = await aLogOf(3);
    const before = running(first, eventCounts);
    await untilFolded(eventCounts, views, 12);
    await before[Symbol.asyncDispose]();
    const second = await aLogOf(0);
    for (let n = 0; n < 20; n += 1)
      await record<'session'>(second, sessionRef(`t${n}`), requested());
    await using _ = running(second, eventCounts);
    await vi.waitUntil(async () => (await views.checkpoint(idOf(eventCounts))) === 20, eventually);
    await expectAsOfOneFold(eventCounts, views, second);
    expect(await views.read(idOf(eventCounts), 's1')).toBeNull();
  });

  test('because it was wiped while it is followed, is folded anew', async () => {
    let log = await aLogOf(3);
    const wiped: EventLog = new Proxy(log, {
      get: (_, name) => Reflect.get(log, name) as unknown,
    });
    await using _ = running(wiped, eventCounts);
    await untilFolded(eventCounts, views, 12);
    log = await aLogOf(1);
    await vi.waitUntil(async () => (await views.checkpoint(idOf(eventCounts))) === 4, eventually);
    await expectAsOfOneFold(eventCounts, views, log);
  });
});

test('a log that answers what was not to be expected is asked again, and the failure told', async () => {
  const log = await aLogOf(3);
  let isOdd = true;
  const answer = new Error('stream not found');
  const oddly = <Answer>(ask: () => Promise<Answer>) => (isOdd ? Promise.reject(answer) : ask());
  const odd: EventLog = {
    ...log,
    lastSequence: (subjects) => oddly(() => log.lastSequence(subjects)),
    facts: () => oddly(() => log.facts()),
  };
  await using projecting = running(odd, eventCounts);
  await vi.waitUntil(() => projecting.standings()[0]?.mode === 'waiting-for-log', eventually);
  isOdd = false;
  await untilFolded(eventCounts, views, 12);
  isOdd = true;
  await vi.waitUntil(() => projecting.standings()[0]?.mode === 'waiting-for-log', eventually);
  isOdd = false;
  await record<'session'>(log, sessionRef('more'), requested());
  await untilFolded(eventCounts, views, 13);
  await expectAsOfOneFold(eventCounts, views, log);
  expect(failures).toContain(answer);
});

describe('the lag', () => {
  test('is 0 once all is folded, and grows while the store is away', async () => {
    const log = await aLogOf(3);
    await using projecting = running(log, eventCounts);
    await untilFolded(eventCounts, views, 12);
    await vi.waitUntil(() => projecting.standings()[0]?.lag.events === 0, eventually);
    await redis.kill();
    await record<'session'>(log, sessionRef('more'), requested());
    await vi.waitUntil(() => (projecting.standings()[0]?.lag.seconds ?? 0) > 0.5, eventually);
    expect(projecting.standings()).toMatchObject([
      { projection: idOf(eventCounts), mode: 'waiting-for-store', lag: { events: 1 } },
    ]);
    await redis.restart();
    await vi.waitUntil(() => projecting.standings()[0]?.lag.seconds === 0, eventually);
  });

  test('is the age of the oldest look that was not reached', () => {
    let now = 0;
    const meter = createLagMeter(() => now);
    meter.sawEnd(5);
    expect(meter.lag()).toEqual({ events: 5, seconds: 0 });
    for (now = 1_000; now <= 3_600_000; now += 1_000) meter.sawEnd(5 + now / 1_000);
    expect(meter.lag()).toEqual({ events: 3_605, seconds: 3_601 });
    meter.reached(3_600);
    expect(meter.lag()).toEqual({ events: 5, seconds: 5 });
    meter.reached(3_605);
    expect(meter.lag()).toEqual({ events: 0, seconds: 0 });
  });
});

describe('a parked event that is tried again', () => {
  let isBrittle: boolean;
  const brittle: typeof eventCounts = {
    ...eventCounts,
    evolve(view, event: RecordedEvent) {
      if (isBrittle && event.sequence === 2) throw new Error('not like this');
      return eventCounts.evolve(view, event);
    },
  };
  async function retrying(log: EventLog) {
    const [event] = await parked.list();
    if (event === undefined) throw new Error('nothing is parked');
    const { signal } = new AbortController();
    return retryParked({ projection: brittle, event, log, views, parked, signal });
  }

  test('stays parked while it fails, and is folded in its place once it does not', async () => {
    isBrittle = true;
    const log = await aLogOf(2);
    await record<'session'>(log, sessionRef('s1'), accessed(T0 + 9 * MINUTE));
    await using _ = running(log, brittle);
    await untilFolded(brittle, views, 9);
    expect(await views.read(idOf(brittle), 's1')).toBe('{"events":4,"last":9}');
    expect(await retrying(log)).toEqual({ outcome: 'fails', reason: 'not like this' });
    expect(await parked.list()).toHaveLength(1);
    isBrittle = false;
    expect(await retrying(log)).toEqual({ outcome: 'mended' });
    expect(await parked.list()).toEqual([]);
    expect(await views.read(idOf(brittle), 's1')).toBe('{"events":5,"last":9}');
    expect(await views.counts(idOf(brittle), ['events/4', 'events/5'])).toEqual([1, 1]);
  });
});
