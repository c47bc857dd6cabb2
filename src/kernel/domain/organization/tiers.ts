import type { Tier } from '#events/organization.ts';

/** The limits of a tier for an organization. */
export type TierLimits = {
  requestsPerMinute: number;
  concurrentSessions: number;
  /** Credits that a new organization of the tier starts with. */
  credits: number;
  /** Its share of the servers while requests of several organizations wait, 1 or more. */
  queueWeight: number;
};
export type Tiers = Record<Tier, TierLimits>;

/**
 * Requests per minute are from the specification; the other values are ours. `TIERS` overrides
 * values.
 */
export const defaultTiers: Tiers = {
  free: { requestsPerMinute: 100, concurrentSessions: 5, credits: 600, queueWeight: 1 },
  pro: { requestsPerMinute: 500, concurrentSessions: 50, credits: 30_000, queueWeight: 2 },
  max: { requestsPerMinute: 1000, concurrentSessions: 500, credits: 1_000_000, queueWeight: 4 },
};
