/** A caller's remaining requests in the current window. */
export type Allowance = {
  limit: number;
  remaining: number;
  /** Unix time in seconds at which the window ends. */
  resetAtSeconds: number;
  isAllowed: boolean;
};

/**
 * Port: counts requests in fixed windows of a minute. The adapter that counts over all processes is
 * rate-limit.redis.ts.
 */
export type RateLimiter = {
  /**
   * Counts one request in the caller's window. Never throws: without its store it counts on its
   * own.
   */
  take(who: string, limit: number): Promise<Allowance>;
  /** False while each process limits on its own. */
  isShared(): boolean;
};

export const WINDOW_MS = 60_000;

/** The allowance after `taken` requests in the window that ends at this time. */
export function allowanceFor(taken: number, limit: number, resetAtSeconds: number): Allowance {
  return {
    limit,
    remaining: Math.max(0, limit - taken),
    resetAtSeconds,
    isAllowed: taken <= limit,
  };
}

/** Callers counted at once in one process; beyond that the oldest are dropped. */
const CALLERS_MAX = 10_000;

/**
 * Counts in this process alone: unauthenticated callers by address, and all callers while Redis is
 * unavailable.
 */
export function createLocalLimiter(now: () => number) {
  const windows = new Map<string, { window: number; taken: number }>();
  return function take(who: string, limit: number): Allowance {
    const window = Math.floor(now() / WINDOW_MS);
    let counted = windows.get(who);
    if (counted === undefined || counted.window !== window) {
      counted = { window, taken: 0 };
      windows.delete(who);
      windows.set(who, counted);
      if (windows.size > CALLERS_MAX)
        for (const [oldest] of windows.entries().take(1)) windows.delete(oldest);
    }
    counted.taken += 1;
    return allowanceFor(counted.taken, limit, (window + 1) * (WINDOW_MS / 1000));
  };
}
