import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { nextOf } from '#projections/all-projections.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { idOf, type Projection } from '#projections/projection.ts';
import {
  rebuild,
  type RebuildOptions,
  type RebuildProgress,
} from '#projections/maintenance/rebuild.ts';
import { createRedisViews, type RedisViews } from '#projections/store/redis/redis-views.ts';
import { createMemoryParked } from '#src/messaging/dead-letters.memory.ts';
import { accessed, MINUTE, requested, T0 } from '#test/support/examples.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { record, sessionRef } from '#test/support/history.ts';
import {
  aLogOf,
  eventCounts,
  eventually,
  everyProjection,
  expectAsOfOneFold,
  project,
  untilFolded,
} from '#test/support/projector.ts';

const SESSIONS = 300;
const EVENTS = 4 * SESSIONS;

let redis: RealRedis;
let views: RedisViews;
beforeEach(async () => {
  redis = await startRedis();
  views = await createRedisViews({ url: redis.url });
});
afterEach(async () => {
  await views[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

function rebuilding<View>(
  projection: Projection<View>,
  log: RebuildOptions<View>['log'],
  more: Partial<RebuildOptions<View>> = {},
) {
  const { signal } = new AbortController();
  return rebuild({ projection, log, views, parked: createMemoryParked(), signal, ...more });
}

test.each(everyProjection.map((projection) => [projection.name, projection] as const))(
  'a rebuild of %s puts right what was altered, and leaves nothing behind',
  async (_, projection) => {
    const log = await aLogOf(SESSIONS);
    const id = idOf(projection);
    await using projector = project(projection, log, views);
    await untilFolded(projection, views, EVENTS);
    const [key = ''] = await views.sample(id, 1);
    await redis.command('HSET', `${id}:views`, key, '"altered"');
    await redis.command('ZADD', `${id}:list:all`, '1', 'stray');
    const steps: RebuildProgress[] = [];
    const done = await rebuilding(projection, log, { onProgress: (step) => steps.push(step) });
    expect(done).toMatchObject({ folded: EVENTS, parked: 0 });
    expect(steps.at(-1)).toMatchObject({ checkpoint: EVENTS, target: EVENTS });
    await expectAsOfOneFold(projection, views, log);
    await record<'session'>(log, sessionRef('new'), requested());
    await untilFolded(projection, views, EVENTS + 1);
    await expectAsOfOneFold(projection, views, log);
    expect(projector.progress.map(({ mode }) => mode)).not.toContain('rewinding');
    const left = await redis.command('KEYS', `*${nextOf(id)}*`);
    expect(left.match(/\S*:next\S*/g) ?? []).toEqual([`${nextOf(id)}:lists`]);
    expect(await redis.command('KEYS', '*:old-*')).toBe('*0\r\n');
  },
);

test('readers see neither a gap nor a step back while it is rebuilt under load', async () => {
  const log = await aLogOf(SESSIONS);
  const id = idOf(eventCounts);
  await using _ = project(eventCounts, log, views);
  await untilFolded(eventCounts, views, EVENTS);
  const stop = new AbortController();
  let written = EVENTS;
  let reads = 0;
  async function write() {
    for (let n = 1; !stop.signal.aborted; n += 1) {
      await record<'session'>(log, sessionRef(`s${n % SESSIONS}`), accessed(T0 + n * MINUTE));
      written += 1;
      await views.reached(id, written, 1_000);
    }
  }
  async function read() {
    let last = { checkpoint: 0, events: 0 };
    for (; !stop.signal.aborted; reads += 1) {
      const page = await views.page(id, { lists: ['all'], offset: 0, limit: 1_000 });
      const items = JSON.parse(`[${page.items}]`) as { events: number }[];
      const events = items.reduce((sum, item) => sum + item.events, 0);
      expect([page.total, items.length]).toEqual([SESSIONS, SESSIONS]);
      // Every event up to the checkpoint is in, and no other.
      expect(events).toBe(page.checkpoint);
      expect(page.checkpoint).toBeGreaterThanOrEqual(last.checkpoint);
      last = { checkpoint: page.checkpoint, events };
    }
  }
  const working = Promise.all([write(), read(), read()]);
  working.catch(() => stop.abort()); // it is asked in the end
  try {
    for (let round = 0; round < 3; round += 1) {
      const before = reads;
      expect((await rebuilding(eventCounts, log))?.folded).toBeGreaterThanOrEqual(EVENTS);
      await vi.waitUntil(() => reads > before, eventually);
    }
  } finally {
    stop.abort();
  }
  await working;
  await untilFolded(eventCounts, views, written);
  await expectAsOfOneFold(eventCounts, views, log);
});

test('only one rebuilds a projection at a time, and a broken off one is no obstacle', async () => {
  const log = await aLogOf(SESSIONS);
  const next = nextOf(idOf(eventCounts));
  expect(await views.claim(next, 'another', 60_000)).toBe(true);
  expect(await rebuilding(eventCounts, log)).toBeNull();
  await views.claim(next, 'another', 0);
  const stop = new AbortController();
  const broken = rebuilding(eventCounts, log, {
    signal: stop.signal,
    onProgress: () => stop.abort(new Error('enough')),
  });
  await expect(broken).rejects.toThrow('enough');
  expect((await rebuilding(eventCounts, log))?.folded).toBe(EVENTS);
  await expectAsOfOneFold(eventCounts, views, log);
});

test('a rebuild goes on where the store loses everything or hangs in the middle', async () => {
  const log = await aLogOf(SESSIONS);
  const flush = () => void views.redis.flushall().catch(() => undefined); // it hangs meanwhile
  const happenings = [flush, () => redis.hang()];
  const modes = new Set<boolean>();
  const rebuilt = rebuilding(eventCounts, log, {
    onProgress({ checkpoint, isWaiting }) {
      modes.add(isWaiting);
      if (checkpoint >= 500) happenings.shift()?.();
      if (isWaiting) redis.resume();
    },
  });
  expect(await rebuilt).not.toBeNull();
  expect(modes).toContain(true);
  await expectAsOfOneFold(eventCounts, views, log);
});

test('an event that can be folded by now is not parked any more', async () => {
  const log = await aLogOf(3);
  const parked = createMemoryParked();
  let isBrittle = true;
  const mended: typeof eventCounts = {
    ...eventCounts,
    evolve(view, event) {
      if (event.sequence === 5 || (isBrittle && event.sequence === 8)) throw new Error('not this');
      return eventCounts.evolve(view, event);
    },
  };
  await using _ = project(mended, log, views, undefined, parked);
  await untilFolded(mended, views, 12);
  expect((await parked.list()).map(({ sequence }) => sequence)).toEqual([5, 8]);
  isBrittle = false;
  expect(await rebuilding(mended, log, { parked })).toMatchObject({ parked: 1 });
  expect((await parked.list()).map(({ sequence }) => sequence)).toEqual([5]);
});

test('a projection of which nothing has happened yet is rebuilt at once', async () => {
  const log = await aLogOf(0);
  expect(await rebuilding(organizationSessions, log)).toMatchObject({ folded: 0 });
});
