import type { Allowance } from '#src/kernel/http/rate-window.ts';

/**
 * Port: counts units in fixed windows of a minute. The adapter that counts over all processes is
 * rate-limit.redis.ts.
 */
export type RateLimiter = {
  /**
   * Takes the units (default 1) from the caller's window if so many are left in it, else none.
   * Never throws: without its store it counts on its own.
   */
  take(who: string, limit: number, units?: number): Promise<Allowance>;
  /** False while each process limits on its own. */
  isShared(): boolean;
};
