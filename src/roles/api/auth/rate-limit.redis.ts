import type { Redis } from 'ioredis';
import { combineCalls } from '#src/kernel/async/combine-calls.ts';
import {
  allowanceFor,
  createLocalLimiter,
  WINDOW_MS,
  type Allowance,
} from '#src/kernel/http/rate-window.ts';
import type { RateLimiter } from './rate-limit.ts';

/**
 * For each key, in their order: takes units from its window if so many are left, else none. A key
 * lives as long as its window, by Redis' own clock: processes whose clocks differ count in the same
 * window. A key that comes several times is read and written once. ARGV: the window's length, then
 * units and limit of each. Returns for each the units that are taken, whether these are among them,
 * and the window's end in Unix seconds.
 */
const TAKE = `
local window = tonumber(ARGV[1])
local taken, ends, stood, answers = {}, {}, {}, {}
for i, key in ipairs(KEYS) do
  local units, limit = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local sum = taken[key]
  if not sum then
    sum = tonumber(redis.call('GET', key) or 0)
    stood[key] = sum
    if sum > 0 then
      ends[key] = redis.call('EXPIRETIME', key)
    else
      local now = tonumber(redis.call('TIME')[1])
      ends[key] = now - now % window + window
    end
  end
  local isAllowed = sum + units <= limit
  if isAllowed then sum = sum + units end
  taken[key] = sum
  answers[3 * i - 2], answers[3 * i - 1], answers[3 * i] = sum, isAllowed and 1 or 0, ends[key]
end
for key, sum in pairs(taken) do
  if sum > stood[key] then
    redis.call('INCRBY', key, sum - stood[key])
    if stood[key] == 0 then redis.call('EXPIREAT', key, ends[key]) end
  end
end
return answers`;

/** Requests that are counted in one call: at most some 0.2 ms of Redis' time. */
const TAKES_MAX = 100;

/** A Redis that is reachable but refuses to count shows in health for this long. */
const FAILING_FOR_MS = 5_000;

type Asked = { who: string; limit: number; units: number };
type WithTake = Redis & {
  takeUnits(keyCount: number, ...keysAndArguments: (string | number)[]): Promise<number[]>;
};

/**
 * One count per organization over all API processes. It uses the connection of the read models: a
 * request's count and its read share a round trip, and the requests of one turn of the event loop
 * are counted in one call. While Redis is unavailable or its answer is
 * overdue, each process counts on its own: requests stay bounded, and no caller is locked out.
 * The window is by Redis' clock; `now` is for what this process counts on its own.
 */
export function createRedisRateLimiter(
  { redis, atTurnEnd }: { redis: Redis; atTurnEnd: (work: () => void) => void },
  now: () => number,
  windowMs = WINDOW_MS,
): RateLimiter {
  redis.defineCommand('takeUnits', { lua: TAKE });
  const shared = redis as WithTake;
  const takeShared = combineCalls<Asked, Allowance>(
    (_, asked) => takeTogether(shared, asked, windowMs),
    TAKES_MAX,
    atTurnEnd,
  );
  const takeLocally = createLocalLimiter(now);
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    async take(who, limit, units = 1) {
      if (redis.status !== 'ready') return takeLocally(who, limit, units);
      try {
        return await takeShared('', { who, limit, units });
      } catch {
        failedAt = now();
        return takeLocally(who, limit, units);
      }
    },
    isShared: () => redis.status === 'ready' && now() - failedAt > FAILING_FOR_MS,
  };
}

async function takeTogether(
  redis: WithTake,
  asked: readonly Asked[],
  windowMs: number,
): Promise<Allowance[]> {
  const keys = asked.map(({ who }) => `rate-limit:v1:${who}`);
  const amounts: number[] = [windowMs / 1000];
  for (const { units, limit } of asked) amounts.push(units, limit);
  const answers = await redis.takeUnits(keys.length, ...keys, ...amounts);
  return asked.map(({ limit }, n) => {
    const at = 3 * n;
    const [taken, endsAtSeconds] = [answers[at], answers[at + 2]] as [number, number];
    return allowanceFor(taken, limit, endsAtSeconds, answers[at + 1] === 1);
  });
}
