import type { Redis } from 'ioredis';
import { allowanceFor, createLocalLimiter, WINDOW_MS } from '#src/http/rate-window.ts';
import type { RateLimiter } from './rate-limit.ts';

/**
 * Counts the request. The key lives as long as its window, by Redis' own clock: processes whose
 * clocks differ count in the same window. Returns the count, and the window's end in Unix seconds.
 */
const TAKE = `
local taken = redis.call('INCR', KEYS[1])
if taken == 1 then
  local now = redis.call('TIME')[1]
  redis.call('EXPIREAT', KEYS[1], now - now % ARGV[1] + ARGV[1])
end
return {taken, redis.call('EXPIRETIME', KEYS[1])}`;

/** A Redis that is reachable but refuses to count shows in health for this long. */
const FAILING_FOR_MS = 5_000;

type WithTake = Redis & {
  takeRequest(key: string, windowSeconds: number): Promise<[taken: number, endsAtSeconds: number]>;
};

/**
 * One count per organization over all API processes. It uses the connection of the read models: a
 * request's count and its read share a round trip. While Redis is unavailable or its answer is
 * overdue, each process counts on its own: requests stay bounded, and no caller is locked out.
 */
export function createRedisRateLimiter(redis: Redis, now: () => number): RateLimiter {
  redis.defineCommand('takeRequest', { numberOfKeys: 1, lua: TAKE });
  const shared = redis as WithTake;
  const takeLocally = createLocalLimiter(now);
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    async take(who, limit) {
      if (redis.status !== 'ready') return takeLocally(who, limit);
      try {
        const key = `rate-limit:v1:${who}`;
        const [taken, endsAtSeconds] = await shared.takeRequest(key, WINDOW_MS / 1000);
        return allowanceFor(taken, limit, endsAtSeconds);
      } catch {
        failedAt = now();
        return takeLocally(who, limit);
      }
    },
    isShared: () => redis.status === 'ready' && now() - failedAt > FAILING_FOR_MS,
  };
}
