import { describe, expect, test, vi } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import { lagOf, runProjection } from '#projections/runner/run-projection.ts';
import type { ProjectionSource } from '#projections/runner/projector.ts';
import { projectionId } from '#projections/projection.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Batch } from '#projections/store/views.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import { accessed, MINUTE, requested, T0 } from '#test/support/examples.ts';
import { settledWithin } from '#test/support/settled-within.ts';
import { record, sessionRef } from '#test/support/history.ts';
import {
  lastEvents,
  eventStoreOfSessions,
  eventually,
  expectSameAsFreshFold,
  startProjector,
  testedProjections,
  truncated,
  untilCheckpoint,
  withChangedEvents,
} from '#test/support/projector.ts';

// `eventStoreOfSessions(3)` holds four events of each of three sessions, with these sequences:
//
//                        s0  s1  s2
//   session.requested     1   2   3
//   session.queued        4   5   6
//   session.activated     7   8   9
//   session.accessed     10  11  12

const id = projectionId(sessionView);

async function statusOf(views: ReturnType<typeof createMemoryViews>, session: string) {
  const text = await views.read(id, sessionKey('org_acme', session));
  return text === null ? null : (JSON.parse(text) as { status: string }).status;
}

/** Whether the event is one of these of the session: `isEventOf(event, 's1', 'queued')`. */
function isEventOf(event: RecordedEvent, session: string, ...words: string[]): boolean {
  const isOfSession = event.aggregate.kind === 'session' && event.aggregate.id === session;
  return isOfSession && words.some((word) => event.type === `session.${word}`);
}

function isAccess({ type }: RecordedEvent): boolean {
  return type === 'session.accessed';
}

describe('a projector', () => {
  test('catches up with the stored events, then folds new ones live', async () => {
    const eventStore = await eventStoreOfSessions(3);
    const views = createMemoryViews();
    await using projector = startProjector(sessionView, eventStore, views);
    await untilCheckpoint(sessionView, views, 12);
    expect(await statusOf(views, 's2')).toBe('active');

    await record<'session'>(eventStore, sessionRef('s9'), requested());
    expect(await views.waitForCheckpoint(id, 13, 5000)).toBe(true);
    expect(await statusOf(views, 's9')).toBe('creating');

    const modes = projector.progress.map(({ mode }) => mode);
    expect([...new Set(modes)]).toEqual(['catching-up', 'live']);
    expect(projector.progress.map(lagOf).at(-1)).toBe(0);
  });

  test.each(testedProjections.map((projection) => [projection.name, projection] as const))(
    'of %s resumes from its checkpoint after a stop',
    async (_, projection) => {
      const eventStore = await eventStoreOfSessions(3);
      const views = createMemoryViews();
      const first = startProjector(projection, eventStore, views);
      await untilCheckpoint(projection, views, 12);
      await first.stop();
      await record<'session'>(eventStore, sessionRef('s1'), accessed(T0 + 5 * MINUTE));

      const subscribe = vi.spyOn(eventStore, 'subscribe');
      const second = startProjector(projection, eventStore, views);
      await untilCheckpoint(projection, views, 13);
      await second.stop();
      expect(subscribe.mock.lastCall?.[0].after).toBe(12);
      await expectSameAsFreshFold(projection, views, eventStore);
    },
  );

  test('writes the events that arrive during a write together in the next ones', async () => {
    const eventStore = await eventStoreOfSessions(0);
    const views = createMemoryViews();
    const batches: Batch[] = [];
    const firstWrite = Promise.withResolvers<void>();
    const slowViews = {
      ...views,
      async write(projection: string, batch: Batch) {
        batches.push(batch);
        if (batches.length === 1) await firstWrite.promise;
        return views.write(projection, batch);
      },
    };
    await record<'session'>(eventStore, sessionRef('s0'), requested());
    await using _ = startProjector(sessionView, eventStore, slowViews);
    await vi.waitUntil(() => batches.length === 1, eventually);
    for (let n = 1; n <= 700; n += 1)
      await record<'session'>(eventStore, sessionRef(`s${n}`), requested());
    firstWrite.resolve();
    await untilCheckpoint(sessionView, views, 701);

    const written = batches.filter(({ writes }) => writes.length > 0);
    expect(written.map(({ upTo, writes }) => ({ upTo, views: writes.length }))).toEqual([
      { upTo: 1, views: 1 },
      { upTo: 501, views: 500 },
      { upTo: 701, views: 200 },
    ]);
  });

  test('without events reads its checkpoint and writes nothing', async () => {
    const eventStore = await eventStoreOfSessions(3);
    const views = createMemoryViews();
    await using _ = startProjector(sessionView, eventStore, views);
    await untilCheckpoint(sessionView, views, 12);
    const [reads, writes] = [vi.spyOn(views, 'checkpoint'), vi.spyOn(views, 'write')];
    await vi.waitUntil(() => reads.mock.calls.length >= 2, eventually);
    expect(writes).not.toHaveBeenCalled();
  });

  test('starts at the first event of an event store that was truncated', async () => {
    const eventStore = truncated(await eventStoreOfSessions(3), 10);
    const views = createMemoryViews();
    await using projector = startProjector(sessionView, eventStore, views);
    await untilCheckpoint(sessionView, views, 12);
    expect(await Promise.all(['s0', 's1', 's2'].map((one) => statusOf(views, one)))).toEqual([
      null,
      'active',
      'active',
    ]);
    expect(projector.progress.at(-1)?.folded).toBe(2);
  });

  test('drops views that lack events which are no longer in the event store', async () => {
    const eventStore = await eventStoreOfSessions(3);
    const views = createMemoryViews();
    const fold = async (upTo: number) => {
      await using _ = startProjector(sessionView, truncated(eventStore, upTo), views);
      await untilCheckpoint(sessionView, views, await eventStore.lastSequence());
    };
    const append = async (minutes: number) =>
      record<'session'>(eventStore, sessionRef('s2'), accessed(T0 + minutes * MINUTE));
    await fold(0);
    await append(2);
    // The border is its checkpoint: it lacks no event.
    await fold(12);
    expect(await statusOf(views, 's0')).toBe('active');
    await append(3);
    await append(4);
    await fold(14);
    expect(await statusOf(views, 's0')).toBeNull();
    expect(await statusOf(views, 's2')).toBe('active');
  });

  test('retries while the event store is unavailable, and misses no event', async () => {
    const eventStore = await eventStoreOfSessions(3);
    const views = createMemoryViews();
    let failures = 3;
    const failing: ProjectionSource = {
      info: () => eventStore.info(),
      history: (aggregate) => eventStore.history(aggregate),
      lastSequence: () => eventStore.lastSequence(),
      read: (options) => eventStore.read(options),
      async *subscribe(options) {
        for await (const batch of eventStore.subscribe({ ...options, batchMax: 5 })) {
          yield batch;
          if (failures-- > 0) throw new Unavailable('event-log');
        }
      },
    };
    await using projector = startProjector(lastEvents, failing, views);
    await untilCheckpoint(lastEvents, views, 12);
    expect(projector.progress.map(({ mode }) => mode)).toContain('waiting-for-log');
    await expectSameAsFreshFold(lastEvents, views, eventStore);
  });

  const views = createMemoryViews();
  const unavailable = {
    ...views,
    checkpoint: () => Promise.reject(new Unavailable('read-model')),
  };
  test.each([
    { mode: 'live', store: views },
    { mode: 'waiting-for-store', store: unavailable },
  ])('stops within 200 ms in mode $mode', async ({ mode, store }) => {
    const projector = startProjector(sessionView, await eventStoreOfSessions(3), store);
    await vi.waitUntil(() => projector.progress.at(-1)?.mode === mode, eventually);
    await settledWithin(200, projector.stop());
  });

  test('throws an unexpected error of the read model instead of retrying', async () => {
    const broken = { ...createMemoryViews(), write: () => Promise.reject(new TypeError('a bug')) };
    const run = runProjection({
      projection: sessionView,
      eventStore: await eventStoreOfSessions(1),
      views: broken,
      deadLetters: createMemoryDeadLetters(),
      signal: new AbortController().signal,
      onDeadLetter() {},
    });
    await expect(run).rejects.toThrow('a bug');
  });
});

describe('an event that cannot be folded', () => {
  test('becomes a dead letter; its view and the other views go on', async () => {
    const eventStore = await eventStoreOfSessions(3);
    const views = createMemoryViews();
    const failing: typeof sessionView = {
      ...sessionView,
      view(event) {
        if (isEventOf(event, 's1', 'queued', 'activated')) throw new Error('cannot be folded');
        return sessionView.view(event);
      },
    };
    await using projector = startProjector(failing, eventStore, views);
    await untilCheckpoint(failing, views, 12);
    const subject = 'evt.org_acme.session.s1';
    expect(projector.deadLetters).toEqual([
      {
        event: { projection: id, sequence: 5, subject: `${subject}.queued` },
        reason: 'cannot be folded',
      },
      {
        event: { projection: id, sequence: 8, subject: `${subject}.activated` },
        reason: 'cannot be folded',
      },
    ]);
    expect(await statusOf(views, 's1')).toBe('active'); // by session.accessed, its next event
    expect(await statusOf(views, 's0')).toBe('active');
  });

  test('leaves its view as the earlier events of the batch made it', async () => {
    const eventStore = await eventStoreOfSessions(3);
    const views = createMemoryViews();
    const failing: typeof lastEvents = {
      ...lastEvents,
      lists: (view, event) => ({ names: ['all'], order: isAccess(event) ? Number.NaN : view.last }),
    };
    await using projector = startProjector(failing, eventStore, views);
    await untilCheckpoint(failing, views, 12);
    expect(projector.deadLetters.map(({ event }) => event.sequence)).toEqual([10, 11, 12]);
    expect(await views.readMany(projectionId(failing), ['s0', 's1', 's2'])).toEqual([
      '{"status":"active","last":7}',
      '{"status":"active","last":8}',
      '{"status":"active","last":9}',
    ]);
  });
});

test('an event whose state is of another version is folded from the history', async () => {
  const eventStore = await eventStoreOfSessions(3);
  const foreign = withChangedEvents(eventStore, (event) => ({ ...event, state: null }));
  const [views, expected] = [createMemoryViews(), createMemoryViews()];
  await using projector = startProjector(sessionView, foreign, views);
  await using _ = startProjector(sessionView, eventStore, expected);
  await untilCheckpoint(sessionView, views, 12);
  await untilCheckpoint(sessionView, expected, 12);
  const keys = [0, 1, 2].map((index) => sessionKey('org_acme', `s${index}`));
  const read = (from: typeof views) => from.readMany(projectionId(sessionView), keys);
  expect(await read(views)).toEqual(await read(expected));
  expect(projector.deadLetters).toEqual([]);
});

test('unreadable events become dead letters and do not hold the checkpoint', async () => {
  const isUnreadable = (event: RecordedEvent) =>
    isEventOf(event, 's0', 'queued') ||
    isEventOf(event, 's1', 'accessed') ||
    isEventOf(event, 's2', 'accessed'); // the last event of all: no batch follows it
  const eventStore = withChangedEvents(await eventStoreOfSessions(3), (event) =>
    isUnreadable(event) ? null : event,
  );
  const views = createMemoryViews();
  await using projector = startProjector(sessionView, eventStore, views);
  await vi.waitUntil(() => projector.progress.at(-1)?.mode === 'live', eventually);
  await untilCheckpoint(sessionView, views, 12);
  expect(projector.deadLetters.map(({ event }) => event.sequence)).toEqual([4, 11, 12]);
  expect(await statusOf(views, 's0')).toBe('active');
});
