/** What is left to a caller in the current window. */
export type Allowance = {
  limit: number;
  remaining: number;
  /** Unix time in seconds at which the window ends. */
  resetAtSeconds: number;
  isAllowed: boolean;
};

/**
 * Port: counts requests in fixed windows of a minute. Adapter over all processes:
 * rate-limit.redis.ts.
 */
export type RateLimiter = {
  /** Takes one request from who's window. Never throws: without its store it counts on its own. */
  take(who: string, limit: number): Promise<Allowance>;
  /** False while each process limits on its own. */
  isShared(): boolean;
};

export const WINDOW_MS = 60_000;

/** The allowance after `taken` requests in the window that ends then. */
export function allowanceFor(taken: number, limit: number, resetAtSeconds: number): Allowance {
  return {
    limit,
    remaining: Math.max(0, limit - taken),
    resetAtSeconds,
    isAllowed: taken <= limit,
  };
}

/** Callers counted at once in one process; beyond it the oldest are forgotten. */
const CALLERS_MAX = 10_000;

/**
 * Counts in this process alone: for unauthenticated callers by address, and while Redis is away.
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
