import type { Redis } from 'ioredis';
import { allowanceFor, createLocalLimiter, WINDOW_MS } from '#src/http/rate-window.ts';
import type { RateLimiter } from './rate-limit.ts';

/**
 * Takes units from the window if so many are left, else none. The key lives as long as its window,
 * by Redis' own clock: processes whose clocks differ count in the same window. Returns the units
 * that are taken, whether these are among them, and the window's end in Unix seconds.
 */
const TAKE = `
local window, units, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local taken = tonumber(redis.call('GET', KEYS[1]) or 0)
local ends
if taken > 0 then
  ends = redis.call('EXPIRETIME', KEYS[1])
else
  local now = tonumber(redis.call('TIME')[1])
  ends = now - now % window + window
end
if taken + units > limit then return {taken, 0, ends} end
redis.call('INCRBY', KEYS[1], units)
if taken == 0 then redis.call('EXPIREAT', KEYS[1], ends) end
return {taken + units, 1, ends}`;

/** A Redis that is reachable but refuses to count shows in health for this long. */
const FAILING_FOR_MS = 5_000;

type Taken = [taken: number, isAllowed: 0 | 1, endsAtSeconds: number];
type WithTake = Redis & {
  takeUnits(key: string, windowSeconds: number, units: number, limit: number): Promise<Taken>;
};

/**
 * One count per organization over all API processes. It uses the connection of the read models: a
 * request's count and its read share a round trip. While Redis is unavailable or its answer is
 * overdue, each process counts on its own: requests stay bounded, and no caller is locked out.
 */
export function createRedisRateLimiter(redis: Redis, now: () => number): RateLimiter {
  redis.defineCommand('takeUnits', { numberOfKeys: 1, lua: TAKE });
  const shared = redis as WithTake;
  const takeLocally = createLocalLimiter(now);
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    async take(who, limit, units = 1) {
      if (redis.status !== 'ready') return takeLocally(who, limit, units);
      try {
        const key = `rate-limit:v1:${who}`;
        const [taken, isAllowed, endsAtSeconds] = await shared.takeUnits(
          key,
          WINDOW_MS / 1000,
          units,
          limit,
        );
        return allowanceFor(taken, limit, endsAtSeconds, isAllowed === 1);
      } catch {
        failedAt = now();
        return takeLocally(who, limit, units);
      }
    },
    isShared: () => redis.status === 'ready' && now() - failedAt > FAILING_FOR_MS,
  };
}
