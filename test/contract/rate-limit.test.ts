import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedisRateLimiter } from '#src/roles/api/auth/rate-limit.redis.ts';
import type { RateLimiter } from '#src/roles/api/auth/rate-limit.ts';
import { createLocalLimiter, WINDOW_MS } from '#src/kernel/http/rate-window.ts';
import type { RedisViews } from '#projections/store/redis/redis-views.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { eventually } from '#test/support/service/service.ts';
import { PATIENT_MS, reachableViews } from '#test/support/stores/view-stores.ts';

/**
 * One count over processes whose clocks differ; it is kept during an outage of Redis. Redis' clock
 * cannot be set, so its window is so long that it ends in no test, at the second 10,000,000,000.
 */
const END_SECONDS = 10_000_000_000;

let redis: RealRedis;
const connections: RedisViews[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  for (const one of connections) await one[Symbol.asyncDispose]();
  await redis?.[Symbol.asyncDispose]();
});

/** The limiter of an API process, on the read model's own connection; its clock is set by hand. */
async function openLimiter(clock = { now: 0 }, answerMs = PATIENT_MS): Promise<RateLimiter> {
  const views = await reachableViews({ url: redis.url, answerMs });
  connections.push(views);
  return createRedisRateLimiter(views, () => clock.now, END_SECONDS * 1000);
}

const accepted = (allowances: { isAllowed: boolean }[]) =>
  allowances.filter(({ isAllowed }) => isAllowed).length;

describe('processes with one Redis', () => {
  it('count together, whatever their clocks say', async () => {
    const limiters = await Promise.all(
      [0, -40_000, 40_000].map((off) => openLimiter({ now: Date.now() + off })),
    );
    const taken = await Promise.all(
      Array.from({ length: 300 }, (_, at) => (limiters[at % 3] as RateLimiter).take('acme', 100)),
    );
    expect(accepted(taken)).toBe(100);
    expect(taken.filter((one) => one.isAllowed).map((one) => one.remaining)).toEqual(
      expect.arrayContaining([...Array(100).keys()]),
    );
    const resets = new Set(taken.map(({ resetAtSeconds }) => resetAtSeconds));
    expect([...resets]).toEqual([END_SECONDS]);
  });

  it('count each organization’s requests of one moment with its own limit', async () => {
    const limiter = await openLimiter();
    const taken = await Promise.all(
      Array.from({ length: 240 }, (_, at) => {
        const [who, limit] = at % 3 === 0 ? (['small', 7] as const) : (['large', 100] as const);
        return limiter.take(`${who}-moment`, limit, at % 3 === 0 ? 2 : 1);
      }),
    );
    const small = taken.filter((_, at) => at % 3 === 0);
    expect(small.map(({ remaining }) => remaining)).toEqual([5, 3, ...Array(78).fill(1)]);
    expect(accepted(small)).toBe(3);
    const large = taken.filter((_, at) => at % 3 !== 0);
    expect(accepted(large)).toBe(100);
    expect(await limiter.take('small-moment', 7)).toMatchObject({ remaining: 0, isAllowed: true });
  });

  it('take all units of a request or none, whichever process is asked', async () => {
    const limiters = await Promise.all([openLimiter(), openLimiter()]);
    const take = (at: number, units: number) =>
      (limiters[at % 2] as RateLimiter).take('costly', 100, units);
    const taken = await Promise.all(Array.from({ length: 30 }, (_, at) => take(at, 30)));
    expect(accepted(taken)).toBe(3);
    // What is refused takes nothing: a cheaper request still fits.
    expect(await take(0, 11)).toMatchObject({ remaining: 10, isAllowed: false });
    expect(await take(1, 10)).toMatchObject({ remaining: 0, isAllowed: true });
    expect(await take(0, 1)).toMatchObject({ limit: 100, remaining: 0, isAllowed: false });
  });

  it('tell the end of the window also where nothing was ever taken', async () => {
    const limiter = await openLimiter();
    const refused = await limiter.take('quiet', 5, 6);
    expect(refused).toEqual({
      limit: 5,
      remaining: 5,
      resetAtSeconds: END_SECONDS,
      isAllowed: false,
    });
  });

  it('count each organization separately, and delete expired counts', async () => {
    const limiter = await openLimiter();
    await Promise.all(Array.from({ length: 5 }, () => limiter.take('a', 5)));
    expect((await limiter.take('a', 5)).isAllowed).toBe(false);
    expect(await limiter.take('b', 5)).toMatchObject({ remaining: 4, isAllowed: true });
    const client = new Redis(redis.url);
    const keys = await client.keys('rate-limit:*');
    expect(keys).toEqual(expect.arrayContaining(['rate-limit:v1:a', 'rate-limit:v1:b']));
    for (const key of keys) expect(await client.expiretime(key)).toBe(END_SECONDS);
    client.disconnect();
  });

  it('count the minutes of Redis’ clock', async () => {
    const views = await reachableViews({ url: redis.url });
    connections.push(views);
    const minute = async () => Math.floor(Number((await views.redis.time())[0]) / 60);
    const before = await minute();
    const { resetAtSeconds } = await createRedisRateLimiter(views, () => 0).take('usual', 5);
    expect(resetAtSeconds % 60).toBe(0);
    expect(resetAtSeconds / 60 - 1).toBeGreaterThanOrEqual(before);
    expect(resetAtSeconds / 60 - 1).toBeLessThanOrEqual(await minute());
  });

  it('start again with the next window', async () => {
    const client = new Redis(redis.url);
    const limiter = await openLimiter();
    for (let request = 0; request < 3; request += 1) await limiter.take('later', 2);
    const key = 'rate-limit:v1:later';
    await client.expireat(key, 1); // as it will then
    expect(await limiter.take('later', 2)).toMatchObject({ remaining: 1, isAllowed: true });
    client.disconnect();
  });
});

describe('while Redis is unavailable', () => {
  it('each process limits by itself and reports it; afterwards they count together again', async () => {
    const clock = { now: 0 };
    const limiters = [await openLimiter(clock), await openLimiter(clock)];
    expect(limiters.map((one) => one.isShared())).toEqual([true, true]);
    await redis.kill();
    await eventually(() => limiters.every((one) => !one.isShared()), 'they have noticed');
    for (const limiter of limiters) {
      const taken = await Promise.all(Array.from({ length: 30 }, () => limiter.take('acme', 10)));
      expect(accepted(taken)).toBe(10);
    }
    await redis.restart();
    // A request that failed while it was away counts for some seconds more.
    clock.now += 60_000;
    await eventually(() => limiters.every((one) => one.isShared()), 'it is back');
    const taken = await Promise.all(
      Array.from({ length: 40 }, (_, at) => (limiters[at % 2] as RateLimiter).take('acme', 10)),
    );
    expect(accepted(taken)).toBe(10);
  });

  it('no request waits longer than the time-out of a hanging Redis', async () => {
    const limiter = await openLimiter({ now: 0 }, 50);
    redis.hang();
    const begin = performance.now();
    const taken = await Promise.all(Array.from({ length: 30 }, () => limiter.take('slow', 10)));
    redis.resume();
    expect(performance.now() - begin).toBeLessThan(WINDOW_MS);
    expect(accepted(taken)).toBe(10);
    expect(limiter.isShared()).toBe(false);
  });

  it('reports a Redis that answers but refuses to count', async () => {
    const limiter = await openLimiter();
    await redis.command('REPLICAOF', '127.0.0.1', '1');
    const taken = await Promise.all(Array.from({ length: 30 }, () => limiter.take('read', 10)));
    expect(accepted(taken)).toBe(10);
    expect(limiter.isShared()).toBe(false);
    await redis.command('REPLICAOF', 'NO', 'ONE');
  });
});

describe('in one process', () => {
  it('a request takes all of its units or none, and with 0 it only asks', () => {
    const take = createLocalLimiter(() => 0);
    expect(take('a', 10, 0)).toMatchObject({ remaining: 10, isAllowed: true });
    expect(take('a', 10, 7)).toMatchObject({ remaining: 3, isAllowed: true });
    expect(take('a', 10, 4)).toMatchObject({ remaining: 3, isAllowed: false });
    expect(take('a', 10, 3)).toMatchObject({ remaining: 0, isAllowed: true });
    expect(take('a', 10, 0)).toMatchObject({ remaining: 0, isAllowed: true });
  });

  it('the count starts again with each minute', () => {
    let now = 59_999;
    const take = createLocalLimiter(() => now);
    expect(take('a', 1)).toEqual({ limit: 1, remaining: 0, resetAtSeconds: 60, isAllowed: true });
    expect(take('a', 1).isAllowed).toBe(false);
    now = 60_000;
    expect(take('a', 1)).toMatchObject({ resetAtSeconds: 120, isAllowed: true });
  });

  it('what was taken is given back in its own minute only, and what was refused never', () => {
    let now = 59_999;
    const take = createLocalLimiter(() => now);
    const taken = take('a', 2);
    take('a', 2);
    take.giveBack('a', take('a', 2));
    expect(take('a', 2, 0).remaining).toBe(0);
    take.giveBack('a', taken);
    expect(take('a', 2, 0).remaining).toBe(1);
    now = 60_000;
    take('a', 2);
    take.giveBack('a', taken);
    expect(take('a', 2, 0).remaining).toBe(1);
  });
});
