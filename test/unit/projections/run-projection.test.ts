import { expect, test, vi } from 'vitest';
import { STATE_UNKNOWN } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { lagOf, runProjection, type ProjectedLog } from '#projections/runner/run-projection.ts';
import { idOf } from '#projections/projection.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Batch } from '#projections/store/views.ts';
import { Unavailable } from '#src/errors.ts';
import { createMemoryParked } from '#src/messaging/dead-letters.memory.ts';
import { accessed, MINUTE, requested, T0 } from '#test/support/examples.ts';
import { record, sessionRef } from '#test/support/history.ts';
import {
  aLogOf,
  changed,
  eventCounts,
  eventually,
  everyProjection,
  expectAsOfOneFold,
  project,
  untilFolded,
} from '#test/support/projector.ts';

const id = idOf(sessionView);

async function statusOf(views: ReturnType<typeof createMemoryViews>, session: string) {
  const text = await views.read(id, sessionKey('org_acme', session));
  return text === null ? null : (JSON.parse(text) as { status: string }).status;
}

test('folds what the log held, then what comes, and tells its modes', async () => {
  const log = await aLogOf(3);
  const views = createMemoryViews();
  await using projector = project(sessionView, log, views);
  await untilFolded(sessionView, views, 12);
  expect(await statusOf(views, 's2')).toBe('active');
  await record<'session'>(log, sessionRef('s9'), requested());
  expect(await views.reached(id, 13, 5000)).toBe(true);
  expect(await statusOf(views, 's9')).toBe('creating');
  const modes = projector.progress.map(({ mode }) => mode);
  expect([...new Set(modes)]).toEqual(['catching-up', 'live']);
  expect(projector.progress.map(lagOf).at(-1)).toBe(0);
});

test('goes on from the checkpoint after it was stopped', async () => {
  const log = await aLogOf(3);
  const views = createMemoryViews();
  for (const projection of everyProjection) {
    await using projector = project(projection, log, views);
    await untilFolded(projection, views, 12);
    await projector.stop();
  }
  await record<'session'>(log, sessionRef('s1'), accessed(T0 + 5 * MINUTE));
  const follow = vi.spyOn(log, 'follow');
  for (const projection of everyProjection) {
    await using _ = project(projection, log, views);
    await untilFolded(projection, views, 13);
    expect(follow.mock.lastCall?.[0].after).toBe(12);
    await expectAsOfOneFold(projection, views, log);
  }
});

test('what comes while a write is under way goes into the next one together', async () => {
  const log = await aLogOf(0);
  const views = createMemoryViews();
  const batches: Batch[] = [];
  const written = Promise.withResolvers<void>();
  const slow = {
    ...views,
    async write(projection: string, batch: Batch) {
      batches.push(batch);
      if (batches.length === 1) await written.promise;
      return views.write(projection, batch);
    },
  };
  await record<'session'>(log, sessionRef('s0'), requested());
  await using _ = project(sessionView, log, slow);
  await vi.waitUntil(() => batches.length === 1, eventually);
  for (let n = 1; n <= 700; n += 1) await record<'session'>(log, sessionRef(`s${n}`), requested());
  written.resolve();
  await untilFolded(sessionView, views, 701);
  const steps = batches.filter(({ writes }) => writes.length > 0);
  expect(steps.map(({ upTo, writes }) => [upTo, writes.length])).toEqual([
    [1, 1],
    [501, 500],
    [701, 200],
  ]);
});

test('an event that cannot be folded is parked, its view stays, the others go on', async () => {
  const log = await aLogOf(4);
  const views = createMemoryViews();
  const brittle: typeof sessionView = {
    ...sessionView,
    evolve(view, event) {
      if (event.sequence === 6 || event.sequence === 10) throw new Error('not like this');
      return sessionView.evolve(view, event);
    },
  };
  await using projector = project(brittle, log, views);
  await untilFolded(brittle, views, 16);
  expect(projector.parked).toEqual([
    { event: parkedAs(6, 's1', 'queued'), reason: 'not like this' },
    { event: parkedAs(10, 's1', 'activated'), reason: 'not like this' },
  ]);
  expect(await statusOf(views, 's1')).toBe('active');
  expect(await statusOf(views, 's0')).toBe('active');
});

function parkedAs(sequence: number, session: string, word: string) {
  return { projection: id, sequence, subject: `evt.org_acme.session.${session}.${word}` };
}

test('an event that cannot be folded leaves what its batch had made before', async () => {
  const log = await aLogOf(2);
  const views = createMemoryViews();
  const brittle: typeof eventCounts = {
    ...eventCounts,
    lists(view, event) {
      if (event.sequence >= 7) return { names: ['all'], order: Number.NaN };
      return { names: ['all'], order: view.last };
    },
  };
  await using projector = project(brittle, log, views);
  await untilFolded(brittle, views, 8);
  expect(projector.parked.map(({ event }) => event.sequence)).toEqual([7, 8]);
  expect(await views.readMany(idOf(brittle), ['s0', 's1'])).toEqual([
    '{"events":3,"last":5}',
    '{"events":3,"last":6}',
  ]);
});

test('a state of another version is parked, unless the view is folded without it', async () => {
  const log = changed(await aLogOf(2), (event) =>
    event.sequence > 6 ? ({ ...event, state: STATE_UNKNOWN } as unknown as RecordedEvent) : event,
  );
  const views = createMemoryViews();
  await using byState = project(sessionView, log, views);
  await using byHand = project(eventCounts, log, views);
  await untilFolded(sessionView, views, 8);
  await untilFolded(eventCounts, views, 8);
  expect(byState.parked.map(({ event }) => event.sequence)).toEqual([7, 8]);
  expect(byState.parked[0]?.reason).toContain('another version');
  expect(byHand.parked).toEqual([]);
});

test('events that cannot be read are parked and do not hold the checkpoint', async () => {
  const log = changed(await aLogOf(3), (event) =>
    [4, 11, 12].includes(event.sequence) ? null : event,
  );
  const views = createMemoryViews();
  await using projector = project(sessionView, log, views);
  await vi.waitUntil(() => projector.progress.at(-1)?.mode === 'live', eventually);
  await untilFolded(sessionView, views, 12);
  expect(projector.parked.map(({ event }) => event.sequence)).toEqual([4, 11, 12]);
  expect(await statusOf(views, 's0')).toBe('active');
});

test('while the log is away it tries again, and nothing is missed', async () => {
  const log = await aLogOf(3);
  const views = createMemoryViews();
  let failures = 3;
  const frail: ProjectedLog = {
    facts: () => log.facts(),
    lastSequence: (subjects) => log.lastSequence(subjects),
    async *follow(options) {
      for await (const batch of log.follow({ ...options, batchMax: 5 })) {
        yield batch;
        if (failures-- > 0) throw new Unavailable('event-log');
      }
    },
  };
  await using projector = project(eventCounts, frail, views);
  await untilFolded(eventCounts, views, 12);
  expect(projector.progress.map(({ mode }) => mode)).toContain('waiting-for-log');
  await expectAsOfOneFold(eventCounts, views, log);
});

test('ends promptly when it is told to, live or waiting', async () => {
  const log = await aLogOf(3);
  const views = createMemoryViews();
  const away = {
    ...views,
    checkpoint: () => Promise.reject(new Unavailable('read-model')),
  };
  for (const store of [views, away]) {
    const projector = project(sessionView, log, store);
    const mode = store === away ? 'waiting-for-store' : 'live';
    await vi.waitUntil(() => projector.progress.at(-1)?.mode === mode, eventually);
    const startedAt = performance.now();
    await projector.stop();
    expect(performance.now() - startedAt).toBeLessThan(200);
  }
});

test('a bug of the store is thrown, not tried again', async () => {
  const broken = { ...createMemoryViews(), write: () => Promise.reject(new TypeError('a bug')) };
  const log = await aLogOf(1);
  const { signal } = new AbortController();
  const parked = createMemoryParked();
  const common = { log, views: broken, parked, signal, onParked() {} };
  const run = runProjection({ projection: sessionView, ...common });
  await expect(run).rejects.toThrow('a bug');
});
