import { BoundedMap } from '#src/kernel/async/bounded-map.ts';

/** A caller's remaining units in the current window; a usual request costs one. */
export type Allowance = {
  limit: number;
  remaining: number;
  /** Unix time in seconds at which the window ends. */
  resetAtSeconds: number;
  isAllowed: boolean;
};

/** Units are counted in fixed windows of a minute. */
export const WINDOW_MS = 60_000;

/** The allowance where `taken` units are used in the window that ends at this time. */
export function allowanceFor(
  taken: number,
  limit: number,
  resetAtSeconds: number,
  isAllowed: boolean,
): Allowance {
  return { limit, remaining: Math.max(0, limit - taken), resetAtSeconds, isAllowed };
}

/** Callers counted at once in one process; beyond that the oldest are dropped. */
const CALLERS_MAX = 10_000;

/**
 * Counts in this process alone. The API counts so unauthenticated callers by address, and all
 * callers while Redis is unavailable; the gateway counts all of its requests so. What is refused
 * takes nothing. With 0 units it only tells what is left. `giveBack` undoes an allowed taking of
 * one unit, if its window has not ended.
 */
export function createLocalLimiter(now: () => number) {
  const windows = new BoundedMap<string, { window: number; taken: number }>(CALLERS_MAX);
  function take(who: string, limit: number, units = 1): Allowance {
    const window = Math.floor(now() / WINDOW_MS);
    let counted = windows.get(who);
    if (counted === undefined || counted.window !== window) {
      counted = { window, taken: 0 };
      if (units > 0) windows.set(who, counted);
      else windows.delete(who);
    }
    const isAllowed = counted.taken + units <= limit;
    if (isAllowed) counted.taken += units;
    return allowanceFor(counted.taken, limit, endOf(window), isAllowed);
  }
  function giveBack(who: string, { isAllowed, resetAtSeconds }: Allowance): void {
    const counted = windows.get(who);
    if (!isAllowed || counted === undefined || endOf(counted.window) !== resetAtSeconds) return;
    counted.taken = Math.max(0, counted.taken - 1);
  }
  return Object.assign(take, { giveBack });
}

/** Unix time in seconds at which the window ends. */
function endOf(window: number): number {
  return (window + 1) * (WINDOW_MS / 1000);
}

/** The headers by which an answer tells the remaining allowance. */
export function rateLimitHeaders({ limit, remaining, resetAtSeconds }: Allowance) {
  return {
    'x-ratelimit-limit': limit,
    'x-ratelimit-remaining': remaining,
    'x-ratelimit-reset': resetAtSeconds,
  };
}

/** Seconds until the window ends, for Retry-After: at least 1, at most the window's length. */
export function secondsToReset({ resetAtSeconds }: Allowance, now: number): number {
  const leftSeconds = resetAtSeconds - Math.floor(now / 1000);
  // The end of a window that is shared is by Redis' clock, which may differ from this machine's.
  return Math.min(WINDOW_MS / 1000, Math.max(1, leftSeconds));
}
