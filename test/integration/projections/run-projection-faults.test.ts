import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { idOf } from '#projections/projection.ts';
import { createRedisViews } from '#projections/store/redis/redis-views.ts';
import type { Batch, Views } from '#projections/store/views.ts';
import { activated, queued, requested } from '#test/support/examples.ts';
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

/** More than one write holds, so that things can happen between two. */
const SESSIONS = 600;
const EVENTS = 4 * SESSIONS;

let redis: RealRedis;
let views: Views;
beforeEach(async () => {
  redis = await startRedis();
  views = await createRedisViews({ url: redis.url });
});
afterEach(async () => {
  await views[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

/** The store, but that something happens just before its n-th write of views. */
function before(store: Views, n: number, happens: () => Promise<unknown>): Views {
  let writes = 0;
  return {
    ...store,
    async write(projection: string, batch: Batch) {
      if (batch.writes.length > 0 && (writes += 1) === n) await happens();
      return store.write(projection, batch);
    },
  };
}

describe.each(everyProjection.map((projection) => [projection.name, projection] as const))(
  'the views of %s',
  (_, projection) => {
    test('come back by themselves when everything is flushed in the middle', async () => {
      const log = await aLogOf(SESSIONS);
      const flushed = before(views, 2, () => redis.command('FLUSHALL'));
      await using projector = project(projection, log, flushed);
      await untilFolded(projection, views, EVENTS);
      expect(projector.progress.map(({ mode }) => mode)).toContain('rewinding');
      await expectAsOfOneFold(projection, views, log);
    });

    test('come back by themselves when everything is flushed while nothing happens', async () => {
      const log = await aLogOf(20);
      await using projector = project(projection, log, views);
      await vi.waitUntil(() => projector.progress.at(-1)?.checkpoint === 80, eventually);
      await redis.command('FLUSHALL');
      await vi.waitUntil(
        () => projector.progress.some(({ mode }) => mode === 'rewinding'),
        eventually,
      );
      await untilFolded(projection, views, 80);
      await expectAsOfOneFold(projection, views, log);
    });

    test('come back by themselves when Redis dies in the middle and begins empty', async () => {
      const log = await aLogOf(SESSIONS);
      const dying = before(views, 2, () => redis.kill());
      await using projector = project(projection, log, dying);
      await vi.waitUntil(() => projector.progress.at(-1)?.mode === 'waiting-for-store', eventually);
      await record<'session'>(log, sessionRef('meanwhile'), requested());
      await redis.restart();
      await untilFolded(projection, views, EVENTS + 1);
      await expectAsOfOneFold(projection, views, log);
    });

    test('are those of one projector where three race', async () => {
      const log = await aLogOf(SESSIONS);
      await using other = await createRedisViews({ url: redis.url });
      const sized = (batchMax: number) => ({
        ...log,
        follow: (options: Parameters<typeof log.follow>[0]) => log.follow({ ...options, batchMax }),
      });
      await using stack = new AsyncDisposableStack();
      for (const [store, batchMax] of [
        [views, 7],
        [other, 11],
        [other, 64],
      ] as const)
        stack.use(project(projection, sized(batchMax), store));
      await untilFolded(projection, views, EVENTS);
      await expectAsOfOneFold(projection, views, log);
      await redis.command('FLUSHALL');
      await untilFolded(projection, views, EVENTS);
      await expectAsOfOneFold(projection, views, log);
    });

    test('survive a store that hangs for a while', async () => {
      const log = await aLogOf(SESSIONS);
      const hanging = before(views, 2, async () => redis.hang());
      await using projector = project(projection, log, hanging);
      await vi.waitUntil(() => projector.progress.at(-1)?.mode === 'waiting-for-store', eventually);
      redis.resume();
      await untilFolded(projection, views, EVENTS);
      await expectAsOfOneFold(projection, views, log);
    });
  },
);

test('a view that a rival has already folded further is not folded twice', async () => {
  const log = await aLogOf(SESSIONS);
  await using rival = project(eventCounts, log, views);
  let isFirst = true;
  /** Stands where the log begins until it reads its first views, while the rival is at the end. */
  const behind: Views = {
    ...views,
    async checkpoint(projection) {
      if (!isFirst) return views.checkpoint(projection);
      isFirst = false;
      await untilFolded(eventCounts, views, EVENTS - 1);
      return 0;
    },
  };
  await using _ = project(eventCounts, log, behind);
  await untilFolded(eventCounts, views, EVENTS);
  await record<'session'>(log, sessionRef('s0x'), requested());
  await untilFolded(eventCounts, views, EVENTS + 1);
  expect(rival.parked).toEqual([]);
  expect(await views.read(idOf(eventCounts), 's0')).toContain('"events":4');
  await expectAsOfOneFold(eventCounts, views, log);
});

test('a view that a rival folds while it is read is not folded twice', async () => {
  const log = await aLogOf(0);
  const overtaken: Views = {
    ...views,
    async readMany(projection, keys) {
      const view = JSON.stringify({ events: 2, last: 2 });
      const write = { key: 'one', sequence: 2, view, lists: ['all', 'events/2'], order: 2 };
      await views.write(projection, { after: 0, upTo: 2, writes: [write] });
      return views.readMany(projection, keys);
    },
  };
  const life = [requested(), queued, activated()];
  await record<'session'>(log, sessionRef('one'), ...life);
  await using _ = project(eventCounts, log, overtaken);
  await untilFolded(eventCounts, views, 3);
  expect(await views.read(idOf(eventCounts), 'one')).toBe('{"events":3,"last":3}');
});

test('views held from before a rival went ahead are read anew', async () => {
  const log = await aLogOf(0);
  const [one, two] = [sessionRef('one'), sessionRef('two')];
  const overtaken: Views = {
    ...views,
    async readMany(projection, keys) {
      if (keys.includes('two')) {
        await using _ = project(eventCounts, log, views);
        await untilFolded(eventCounts, views, 3);
      }
      return views.readMany(projection, keys);
    },
  };
  await record<'session'>(log, one, requested());
  await using projector = project(eventCounts, log, overtaken);
  await vi.waitUntil(() => projector.progress.at(-1)?.checkpoint === 1, eventually);
  await Promise.all([
    record<'session'>(log, one, queued),
    record<'session'>(log, two, requested()),
  ]);
  await vi.waitUntil(() => projector.progress.at(-1)?.checkpoint === 3, eventually);
  await record<'session'>(log, one, activated());
  await untilFolded(eventCounts, views, 4);
  expect(await views.read(idOf(eventCounts), 'one')).toBe('{"events":3,"last":4}');
});
