import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rebuildStoreOf } from '#projections/all-projections.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { projectionId, type Projection } from '#projections/projection.ts';
import {
  rebuild,
  type RebuildOptions,
  type RebuildProgress,
} from '#projections/maintenance/rebuild.ts';
import type { RedisViews } from '#projections/store/redis/redis-views.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import { accessed, MINUTE, requested, T0 } from '#test/support/examples.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { record, sessionRef } from '#test/support/history.ts';
import {
  eventStoreOfSessions,
  lastEvents,
  eventually,
  testedProjections,
  expectSameAsFreshFold,
  startProjector,
  untilCheckpoint,
} from '#test/support/projector.ts';
import { reachableViews } from '#test/support/stores/view-stores.ts';

const SESSIONS = 300;
const EVENTS = 4 * SESSIONS;

let redis: RealRedis;
let views: RedisViews;
beforeEach(async () => {
  redis = await startRedis();
  views = await reachableViews({ url: redis.url });
});
afterEach(async () => {
  await views[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

function rebuilding<View>(
  projection: Projection<View>,
  eventStore: RebuildOptions<View>['eventStore'],
  more: Partial<RebuildOptions<View>> = {},
) {
  const { signal } = new AbortController();
  return rebuild({
    projection,
    eventStore,
    views,
    deadLetters: createMemoryDeadLetters(),
    signal,
    ...more,
  });
}

test.each(testedProjections.map((projection) => [projection.name, projection] as const))(
  'a rebuild of %s corrects altered data, and leaves nothing behind',
  async (_, projection) => {
    const eventStore = await eventStoreOfSessions(SESSIONS);
    const id = projectionId(projection);
    await using projector = startProjector(projection, eventStore, views);
    await untilCheckpoint(projection, views, EVENTS);
    const [key = ''] = await views.sample(id, 1);
    await redis.command('HSET', `${id}:views`, key, '"altered"');
    await redis.command('ZADD', `${id}:list:all`, '1', 'stray');
    const steps: RebuildProgress[] = [];
    const done = await rebuilding(projection, eventStore, {
      onProgress: (step) => steps.push(step),
    });
    expect(done).toMatchObject({ folded: EVENTS, deadLettered: 0 });
    expect(steps.at(-1)).toMatchObject({ checkpoint: EVENTS, target: EVENTS });
    await expectSameAsFreshFold(projection, views, eventStore);
    await record<'session'>(eventStore, sessionRef('new'), requested());
    await untilCheckpoint(projection, views, EVENTS + 1);
    await expectSameAsFreshFold(projection, views, eventStore);
    expect(projector.progress.map(({ mode }) => mode)).not.toContain('rewinding');
    const left = await redis.command('KEYS', `*${rebuildStoreOf(id)}*`);
    expect(left.match(/\S*:next\S*/g) ?? []).toEqual([`${rebuildStoreOf(id)}:lists`]);
    expect(await redis.command('KEYS', '*:old-*')).toBe('*0\r\n');
  },
);

test('readers see neither a gap nor a step back while it is rebuilt under load', async () => {
  const eventStore = await eventStoreOfSessions(SESSIONS);
  const id = projectionId(lastEvents);
  await using _ = startProjector(lastEvents, eventStore, views);
  await untilCheckpoint(lastEvents, views, EVENTS);
  const stop = new AbortController();
  let written = EVENTS;
  let reads = 0;
  async function write() {
    for (let n = 1; !stop.signal.aborted; n += 1) {
      await record<'session'>(
        eventStore,
        sessionRef(`s${n % SESSIONS}`),
        accessed(T0 + n * MINUTE),
      );
      written += 1;
      await views.waitForCheckpoint(id, written, 1_000);
    }
  }
  async function read() {
    let checkpoint = 0;
    for (; !stop.signal.aborted; reads += 1) {
      const page = await views.page(id, { lists: ['all'], offset: 0, limit: 1_000 });
      const items = JSON.parse(`[${page.items}]`) as { last: number }[];
      expect([page.total, items.length]).toEqual([SESSIONS, SESSIONS]);
      // The event at the checkpoint is in, and none after it.
      expect(Math.max(...items.map(({ last }) => last))).toBe(page.checkpoint);
      expect(page.checkpoint).toBeGreaterThanOrEqual(checkpoint);
      ({ checkpoint } = page);
    }
  }
  const working = Promise.all([write(), read(), read()]);
  working.catch(() => stop.abort()); // it is asked in the end
  try {
    for (let round = 0; round < 3; round += 1) {
      const before = reads;
      expect((await rebuilding(lastEvents, eventStore))?.folded).toBeGreaterThanOrEqual(EVENTS);
      await vi.waitUntil(() => reads > before, eventually);
    }
  } finally {
    stop.abort();
  }
  await working;
  await untilCheckpoint(lastEvents, views, written);
  await expectSameAsFreshFold(lastEvents, views, eventStore);
});

test('one process at a time rebuilds a projection; an interrupted rebuild does not block', async () => {
  const eventStore = await eventStoreOfSessions(SESSIONS);
  const next = rebuildStoreOf(projectionId(lastEvents));
  expect(await views.acquire(next, 'another', 60_000)).toBe(true);
  expect(await rebuilding(lastEvents, eventStore)).toBeNull();
  await views.acquire(next, 'another', 0);
  const stop = new AbortController();
  const broken = rebuilding(lastEvents, eventStore, {
    signal: stop.signal,
    onProgress: () => stop.abort(new Error('enough')),
  });
  await expect(broken).rejects.toThrow('enough');
  expect((await rebuilding(lastEvents, eventStore))?.folded).toBe(EVENTS);
  await expectSameAsFreshFold(lastEvents, views, eventStore);
});

test('a rebuild survives a store that loses everything or hangs', async () => {
  const eventStore = await eventStoreOfSessions(SESSIONS);
  const flush = () => void views.redis.flushall().catch(() => undefined); // it hangs meanwhile
  const happenings = [flush, () => redis.hang()];
  const modes = new Set<boolean>();
  const rebuilt = rebuilding(lastEvents, eventStore, {
    onProgress({ checkpoint, isWaiting }) {
      modes.add(isWaiting);
      if (checkpoint >= 500) happenings.shift()?.();
      if (isWaiting) redis.resume();
    },
  });
  expect(await rebuilt).not.toBeNull();
  expect(modes).toContain(true);
  await expectSameAsFreshFold(lastEvents, views, eventStore);
});

test('a store that loses everything between the last write and the switch is folded again', async () => {
  const eventStore = await eventStoreOfSessions(SESSIONS);
  let attempts = 0;
  const losing: RedisViews = {
    ...views,
    async replace(...args) {
      attempts += 1;
      if (attempts === 1) await views.redis.flushall();
      return views.replace(...args);
    },
  };
  await rebuilding(lastEvents, eventStore, { views: losing });
  expect(attempts).toBeGreaterThan(1);
  await expectSameAsFreshFold(lastEvents, views, eventStore);
});

test('a rebuild resolves the dead letter of an event that can be folded now', async () => {
  const eventStore = await eventStoreOfSessions(3);
  const deadLetters = createMemoryDeadLetters();
  let isBrittle = true;
  const fixed: typeof lastEvents = {
    ...lastEvents,
    view(event) {
      if (event.sequence === 5 || (isBrittle && event.sequence === 8)) throw new Error('not this');
      return lastEvents.view(event);
    },
  };
  await using _ = startProjector(fixed, eventStore, views, undefined, deadLetters);
  await untilCheckpoint(fixed, views, 12);
  expect((await deadLetters.list()).map(({ sequence }) => sequence)).toEqual([5, 8]);
  isBrittle = false;
  expect(await rebuilding(fixed, eventStore, { deadLetters })).toMatchObject({
    deadLettered: 1,
  });
  expect((await deadLetters.list()).map(({ sequence }) => sequence)).toEqual([5]);
});

test('a projection without events is rebuilt at once', async () => {
  const eventStore = await eventStoreOfSessions(0);
  expect(await rebuilding(organizationSessions, eventStore)).toMatchObject({ folded: 0 });
});
