import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { projectionId, type Projection } from '#projections/projection.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { verify, type VerifyResult } from '#projections/maintenance/verify.ts';
import type { RedisViews } from '#projections/store/redis/redis-views.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { accessed, MINUTE, T0 } from '#test/support/examples.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { record, sessionRef } from '#test/support/history.ts';
import {
  eventStoreOfSessions,
  lastEvents,
  startProjector,
  truncated,
  untilCheckpoint,
  type Projector,
} from '#test/support/projector.ts';
import { reachableViews } from '#test/support/stores/view-stores.ts';

const SESSIONS = 300;
const EVENTS = 4 * SESSIONS;
const stateProjections: Projection<unknown>[] = [sessionView, organizationSessions];
let projections: Projection<unknown>[];

let redis: RealRedis;
let views: RedisViews;
let eventStore: EventStore;
let running: Projector[];
beforeEach(async () => {
  projections = [...stateProjections, lastEvents];
  redis = await startRedis();
  views = await reachableViews({ url: redis.url });
  eventStore = await eventStoreOfSessions(SESSIONS);
  running = projections.map((projection) => startProjector(projection, eventStore, views));
  for (const projection of projections) await untilCheckpoint(projection, views, EVENTS);
});
afterEach(async () => {
  for (const one of running) await one.stop();
  await views[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

function verifying(sample: number | null = null): Promise<VerifyResult[]> {
  const { signal } = new AbortController();
  return verify({ projections, eventStore, views, signal, sample });
}

/** The differences of one projection; the others have none. */
async function foundOf(projection: Projection<unknown>, sample: number | null = null) {
  const all = await verifying(sample);
  for (const other of all)
    if (other.projection !== projectionId(projection)) expect(other.differences).toEqual([]);
  return all.find((one) => one.projection === projectionId(projection))?.differences;
}

test('intact views have no difference, all of them or a sample', async () => {
  const equal = projections.map((projection) => ({
    projection: projectionId(projection),
    views: SESSIONS,
    differences: [],
    isCut: false,
  }));
  expect(await verifying()).toEqual(equal);
  expect(await verifying(20)).toEqual(equal.map((one) => ({ ...one, views: 20 })));
});

test('views whose events were removed from the event store are not compared', async () => {
  // The requests, and the other events of a few sessions that end the store.
  const last = accessed(T0 + 2 * MINUTE);
  for (const session of ['s1', 's2'])
    await record<'session'>(eventStore, sessionRef(session), last);
  for (const projection of projections) await untilCheckpoint(projection, views, EVENTS + 2);
  eventStore = truncated(eventStore, EVENTS);
  projections = stateProjections;
  const counted = async (sample: number | null) =>
    (await verifying(sample)).map(({ views: compared, differences }) => [compared, differences]);
  expect(await counted(null)).toEqual([
    [2, []],
    [2, []],
  ]);
  for (const [, differences] of await counted(50)) expect(differences).toEqual([]);

  const states = projectionId(sessionView);
  expect(await views.removeUpTo(states, EVENTS)).toBe(SESSIONS - 2);
  expect((await verifying())[0]).toMatchObject({ views: 2, differences: [] });
  await views.redis.hset(`${states}:views`, sessionKey('org_acme', 's1'), '{}');
  expect((await verifying())[0]?.differences.length).toBeGreaterThan(0);
});

describe('a change by hand is reported:', () => {
  const key = sessionKey('org_acme', 's7');
  const [rows, states] = [projectionId(organizationSessions), projectionId(sessionView)];

  test('a field of a view', async () => {
    const text = (await views.read(states, key)) ?? '';
    const altered = text.replace('"status":"active"', '"status":"stopped"');
    expect(altered).not.toBe(text);
    await views.redis.hset(`${states}:views`, key, altered);
    expect(await foundOf(sessionView)).toEqual([
      { key, path: 'status', stored: '"stopped"', folded: '"active"' },
    ]);
    expect(await foundOf(sessionView, SESSIONS)).toHaveLength(1);
  });

  test('a nested field, and a missing one', async () => {
    const state = JSON.parse((await views.read(states, key)) ?? '') as Record<string, unknown>;
    delete state['description'];
    state['labels'] = { team: 'shop', more: 'x' };
    await views.redis.hset(`${states}:views`, key, JSON.stringify(state));
    expect(await foundOf(sessionView)).toEqual([
      { key, path: 'description', stored: 'nothing', folded: '"checks the shop"' },
      { key, path: 'labels.more', stored: '"x"', folded: 'nothing' },
    ]);
  });

  test('a view that is no JSON, is missing, or should not exist', async () => {
    await views.redis.hset(`${states}:views`, key, 'altered');
    await views.redis.hdel(`${states}:views`, sessionKey('org_acme', 's8'));
    await views.redis.hset(`${states}:views`, sessionKey('org_acme', 'none'), '{}');
    const found = (await foundOf(sessionView)) ?? [];
    expect(found.map((one) => [one.key, one.path, one.stored.slice(0, 16)]).toSorted()).toEqual([
      [sessionKey('org_acme', 'none'), 'view', '{}'],
      [key, 'view', 'no JSON: altered'],
      [sessionKey('org_acme', 's8'), 'view', 'there is none'],
    ]);
  });

  test('a list entry that is missing, moved, or does not belong there', async () => {
    await views.redis.zrem(`${rows}:list:org_acme/all`, key);
    await views.redis.zadd(`${rows}:list:org_acme/open`, 5, sessionKey('org_acme', 's9'));
    await views.redis.zadd(`${rows}:list:org_acme/status/failed`, 5, key);
    await views.redis.zadd(`${rows}:list:org_acme/label/never=seen`, 5, 'stray');
    const found = (await foundOf(organizationSessions)) ?? [];
    expect(found.map((one) => [one.key, one.path, one.stored]).toSorted()).toEqual([
      [key, 'list org_acme/all', 'does not stand in its place'],
      [key, 'list org_acme/status/failed', 'stands in it'],
      [sessionKey('org_acme', 's9'), 'list org_acme/open', 'does not stand in its place'],
      ['stray', 'list org_acme/label/never=seen', 'stands in it'],
    ]);
  });

  test('a sequence, and a stored place', async () => {
    await views.redis.hset(`${rows}:sequences`, key, '3');
    await views.redis.hset(`${rows}:places`, key, '{"order":1,"lists":["org_acme/all"]}');
    const paths = ((await foundOf(organizationSessions)) ?? []).map(({ path }) => path);
    expect(paths.slice(0, 3)).toEqual(['sequence', 'lists', 'list org_acme/all']);
  });

  test('a view that was replaced by an older one', async () => {
    const old = JSON.stringify({ status: 'queued', last: 308 });
    await views.redis.hset(`${projectionId(lastEvents)}:views`, 's7', old);
    await views.redis.hset(`${projectionId(lastEvents)}:sequences`, 's7', '308');
    const found = (await foundOf(lastEvents)) ?? [];
    expect(found.map(({ path, stored }) => [path, stored])).toEqual([
      ['status', '"queued"'],
      ['last', '308'],
      ['sequence', '308'],
    ]);
  });
});

test('of many differences the first hundred are reported, and that there are more', async () => {
  await views.redis.del(`${projectionId(sessionView)}:views`);
  const [first] = await verifying();
  expect(first).toMatchObject({ isCut: true, differences: { length: 100 } });
});

test('views that change meanwhile are no difference', async () => {
  const stop = new AbortController();
  const written = { count: 0 };
  async function write() {
    for (; !stop.signal.aborted; written.count += 1) {
      const event = accessed(T0 + (written.count + 1) * MINUTE);
      await record<'session'>(eventStore, sessionRef(`s${written.count % SESSIONS}`), event);
      await views.waitForCheckpoint(projectionId(lastEvents), EVENTS + written.count + 1, 1_000);
    }
  }
  const writing = write();
  try {
    // As many rounds as it takes until more than fifty changes have come meanwhile.
    for (let round = 0; round < 3 || written.count <= 50; round += 1)
      for (const { differences } of await verifying()) expect(differences).toEqual([]);
  } finally {
    stop.abort();
  }
  await writing;
});
