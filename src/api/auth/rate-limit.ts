import type { Allowance } from '#src/http/rate-window.ts';

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
