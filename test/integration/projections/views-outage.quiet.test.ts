import { setImmediate } from 'node:timers/promises';
import {
  afterAll,
  beforeAll,
  beforeEach,
  afterEach,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { createRedisViews } from '#projections/store/redis/redis-views.ts';
import type { Views } from '#projections/store/views.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { settledWithin } from '#test/support/settled-within.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { reachableViews } from '#test/support/stores/view-stores.ts';

let redis: RealRedis;
let views: Views;
let statuses: string[];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis[Symbol.asyncDispose]());
beforeEach(async () => {
  statuses = [];
  views = await reachableViews({ url: redis.url, onStatus: (status) => statuses.push(status) });
});
afterEach(() => views[Symbol.asyncDispose]());

const within10s = { timeout: 10_000, interval: 10 };
const page = { lists: ['all'], offset: 0, limit: 20 };

function aView(sequence: number) {
  return { key: 'a', sequence, view: '{"a":1}', lists: ['all'], order: 1 };
}

async function fold(upTo: number, projection = freshId('views'), after = 0): Promise<string> {
  await views.write(projection, { after, upTo, writes: [aView(upTo)] });
  return projection;
}

test('the stored keys are readable with redis-cli, and there are no others', async () => {
  await redis.command('FLUSHALL');
  const p = await fold(3, 'session-view:v1');
  await views.page(p, { ...page, lists: ['all', 'all'] });
  const keys = (await redis.command('KEYS', '*')).match(/session-view:\S+|\S*temp\S*/g);
  expect(keys?.toSorted()).toEqual(
    ['checkpoint', 'list:all', 'places', 'sequences', 'views'].map((part) => `${p}:${part}`),
  );
  expect(await redis.command('DBSIZE')).toBe(':5\r\n');
  expect(await redis.command('HGET', `${p}:views`, 'a')).toContain('{"a":1}');
  await views.write(p, { after: 3, upTo: 4, writes: [{ ...aView(4), view: null }] });
  expect(await redis.command('KEYS', '*')).toBe(`*1\r\n$26\r\n${p}:checkpoint\r\n`);
});

test('every operation works after SCRIPT FLUSH', async () => {
  const p = await fold(3);
  await views.page(p, page);
  await redis.command('SCRIPT', 'FLUSH');
  const asked = [views.page(p, page), views.counts(p, ['all']), views.page(p, page)] as const;
  expect((await Promise.all(asked)).length).toBe(3);
  await redis.command('SCRIPT', 'FLUSH');
  expect(await views.write(p, { after: 3, upTo: 5, writes: [aView(5)] })).toBe(5);
});

test('after a flush the checkpoint is 0, and waiting for the old one times out', async () => {
  const p = await fold(3);
  await redis.command('FLUSHALL');
  expect(await views.checkpoint(p)).toBe(0);
  expect(await views.waitForCheckpoint(p, 3, 100)).toBe(false);
  expect((await views.page(p, page)).checkpoint).toBe(0);
});

test('without Redis every method fails at once, and works again afterwards', async () => {
  const p = await fold(3);
  expect(views.isReachable()).toBe(true);
  await redis.kill();
  await vi.waitUntil(() => !views.isReachable(), within10s);
  const tries = [
    views.checkpoint(p),
    views.write(p, { after: 3, upTo: 4, writes: [] }),
    views.read(p, 'a'),
    views.readWithCheckpoint(p, 'a'),
    views.readMany(p, ['a']),
    views.page(p, page),
    views.counts(p, ['all']),
    views.rank(p, 'all', 'a'),
  ];
  for (const outcome of await settledWithin(200, Promise.allSettled(tries))) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { part: 'read-model' } });
    expect(outcome).toHaveProperty('reason', expect.any(Unavailable));
  }
  expect(await views.waitForCheckpoint(p, 3, 50)).toBe(false);
  await redis.restart();
  await vi.waitUntil(() => views.isReachable(), within10s);
  expect(await views.checkpoint(p)).toBe(0);
  expect(await views.write(p, { after: 0, upTo: 4, writes: [aView(4)] })).toBe(4);
  expect((await views.page(p, page)).items).toBe('{"a":1}');
  expect(statuses).toEqual(['up', 'down', 'up']);
});

test('pending calls fail when Redis dies; none hangs', async () => {
  const p = await fold(3);
  redis.hang();
  const reading = Promise.allSettled([views.readWithCheckpoint(p, 'a'), views.page(p, page)]);
  await redis.kill();
  const outcomes = await settledWithin(1_000, reading);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await redis.restart();
});

test('a Redis that hangs costs a second once, then fails at once until it answers', async () => {
  const p = await fold(3);
  redis.hang();
  const first = views.readWithCheckpoint(p, 'a');
  await setImmediate();
  // Asked in the next turn, while the first is unanswered.
  const reading = Promise.allSettled([first, views.page(p, page)]);
  for (const outcome of await settledWithin(1500, reading))
    expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(Unavailable) });
  await vi.waitUntil(() => !views.isReachable(), within10s);
  await expect(settledWithin(200, views.page(p, page))).rejects.toThrow(Unavailable);
  redis.resume();
  await vi.waitUntil(() => views.isReachable(), within10s);
  expect(await views.read(p, 'a')).toBe('{"a":1}');
});

test('a Redis that hangs is detected without a call', async () => {
  redis.hang();
  await vi.waitUntil(() => !views.isReachable(), within10s);
  redis.resume();
  await vi.waitUntil(() => views.isReachable(), within10s);
});

test('a waiting call is notified of a new checkpoint without polling', async () => {
  const p = await fold(3);
  await using other = await reachableViews({ url: redis.url });
  // The poll never comes.
  vi.useFakeTimers({ toFake: ['setInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  for (let sequence = 4; sequence < 24; sequence += 1) {
    const reaching = views.waitForCheckpoint(p, sequence, 5_000);
    // Once this call has answered, the waiter has read the checkpoint and found it too low.
    await views.checkpoint(p);
    await other.write(p, { after: sequence - 1, upTo: sequence, writes: [] });
    expect(await reaching).toBe(true);
  }
});

test('a waiting call that missed the message finds the checkpoint by the poll', async () => {
  const p = await fold(3);
  const reaching = views.waitForCheckpoint(p, 4, 5000);
  await views.checkpoint(p);
  await redis.command('SET', `${p}:checkpoint`, '4');
  expect(await reaching).toBe(true);
});

test('a waiting call is notified after the subscriber connection was lost', async () => {
  const p = await fold(3);
  await using other = await reachableViews({ url: redis.url });
  for (let sequence = 4; sequence < 8; sequence += 1) {
    const reaching = views.waitForCheckpoint(p, sequence, 5_000);
    await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await other.write(p, { after: sequence - 1, upTo: sequence, writes: [] });
    expect(await reaching).toBe(true);
  }
});

test('views open without Redis and become available with it', async () => {
  await redis.kill();
  await using early = await createRedisViews({ url: redis.url });
  expect(early.isReachable()).toBe(false);
  await expect(early.checkpoint('any')).rejects.toThrow(Unavailable);
  await redis.restart();
  await vi.waitUntil(() => early.isReachable(), within10s);
  expect(await early.checkpoint('any')).toBe(0);
});

test('a Redis error that is no outage is thrown unchanged', async () => {
  const p = freshId('views');
  await redis.command('SET', `${p}:views`, 'text');
  await expect(views.read(p, 'a')).rejects.toThrow('WRONGTYPE');
});
