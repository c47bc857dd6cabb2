import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Batch, Views } from '#projections/store/views.ts';
import { requested } from '#test/support/examples.ts';
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

/** More than one write holds, so that a fault can happen between two writes. */
const SESSIONS = 600;
const EVENTS = 4 * SESSIONS;

let redis: RealRedis;
let views: Views;
beforeEach(async () => {
  redis = await startRedis();
  views = await reachableViews({ url: redis.url });
});
afterEach(async () => {
  await views[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

/** The store with a fault injected just before its n-th write of views. */
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

describe.each(testedProjections.map((projection) => [projection.name, projection] as const))(
  'the views of %s',
  (_, projection) => {
    test('recover from a flush during the catch-up', async () => {
      const log = await eventStoreOfSessions(SESSIONS);
      const flushed = before(views, 2, () => redis.command('FLUSHALL'));
      await using projector = startProjector(projection, log, flushed);
      await untilCheckpoint(projection, views, EVENTS);
      expect(projector.progress.map(({ mode }) => mode)).toContain('rewinding');
      await expectSameAsFreshFold(projection, views, log);
    });

    test('recover from a flush while no event comes', async () => {
      const log = await eventStoreOfSessions(20);
      await using projector = startProjector(projection, log, views);
      await vi.waitUntil(() => projector.progress.at(-1)?.checkpoint === 80, eventually);
      await redis.command('FLUSHALL');
      await vi.waitUntil(
        () => projector.progress.some(({ mode }) => mode === 'rewinding'),
        eventually,
      );
      await untilCheckpoint(projection, views, 80);
      await expectSameAsFreshFold(projection, views, log);
    });

    test('recover from a Redis that dies during the catch-up and restarts empty', async () => {
      const log = await eventStoreOfSessions(SESSIONS);
      const dying = before(views, 2, () => redis.kill());
      await using projector = startProjector(projection, log, dying);
      await vi.waitUntil(() => projector.progress.at(-1)?.mode === 'waiting-for-store', eventually);
      await record<'session'>(log, sessionRef('meanwhile'), requested());
      await redis.restart();
      await untilCheckpoint(projection, views, EVENTS + 1);
      await expectSameAsFreshFold(projection, views, log);
    });

    test('equal those of one projector when three race', async () => {
      const log = await eventStoreOfSessions(SESSIONS);
      await using other = await reachableViews({ url: redis.url });
      const sized = (batchMax: number) => ({
        ...log,
        follow: (options: Parameters<typeof log.subscribe>[0]) =>
          log.subscribe({ ...options, batchMax }),
      });
      await using stack = new AsyncDisposableStack();
      for (const [store, batchMax] of [
        [views, 7],
        [other, 11],
        [other, 64],
      ] as const)
        stack.use(startProjector(projection, sized(batchMax), store));
      await untilCheckpoint(projection, views, EVENTS);
      await expectSameAsFreshFold(projection, views, log);
      await redis.command('FLUSHALL');
      await untilCheckpoint(projection, views, EVENTS);
      await expectSameAsFreshFold(projection, views, log);
    });

    test('survive a store that hangs for a while', async () => {
      const log = await eventStoreOfSessions(SESSIONS);
      const hanging = before(views, 2, async () => redis.hang());
      await using projector = startProjector(projection, log, hanging);
      await vi.waitUntil(() => projector.progress.at(-1)?.mode === 'waiting-for-store', eventually);
      redis.resume();
      await untilCheckpoint(projection, views, EVENTS);
      await expectSameAsFreshFold(projection, views, log);
    });
  },
);

test('a projector that is behind another one goes on from where that one is', async () => {
  const log = await eventStoreOfSessions(SESSIONS);
  await using rival = startProjector(lastEvents, log, views);
  let isFirst = true;
  /**
   * Starts at the event store's beginning and waits before its first read of views until the rival
   * is at the end.
   */
  const behind: Views = {
    ...views,
    async checkpoint(projection) {
      if (!isFirst) return views.checkpoint(projection);
      isFirst = false;
      await untilCheckpoint(lastEvents, views, EVENTS - 1);
      return 0;
    },
  };
  await using _ = startProjector(lastEvents, log, behind);
  await untilCheckpoint(lastEvents, views, EVENTS);
  await record<'session'>(log, sessionRef('s0x'), requested());
  await untilCheckpoint(lastEvents, views, EVENTS + 1);
  expect(rival.deadLetters).toEqual([]);
  await expectSameAsFreshFold(lastEvents, views, log);
});
