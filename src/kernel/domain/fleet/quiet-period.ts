import type { PoolDecision, PoolInputs } from '#events/pool.ts';

/**
 * Since when demand has been below the target, the peak demand in that time, and since when there
 * has been a surplus of idle browsers; milliseconds of one clock, null: it is not so.
 */
export type QuietPeriod = { belowSince: number | null; peak: number; surplusSince: number | null };

export const noQuietPeriod: QuietPeriod = { belowSince: null, peak: 0, surplusSince: null };

/** The quiet period after a decision. After each lowering of the target a new one begins. */
export function quietAfter(
  { belowSince, peak, surplusSince }: QuietPeriod,
  { target: before, idle }: PoolInputs,
  { need, target }: PoolDecision,
  now: number,
): QuietPeriod {
  const isSame = need < target && target === before && belowSince !== null;
  const since = need < target ? now : null;
  return {
    peak: isSame ? Math.max(peak, need) : need,
    belowSince: isSame ? belowSince : since,
    surplusSince: idle > target ? (surplusSince ?? now) : null,
  };
}

/** The quiet period as inputs of a decision. */
export function quietInputs({ belowSince, peak, surplusSince }: QuietPeriod, now: number) {
  const ageOf = (since: number | null) => (since === null ? 0 : Math.round(now - since));
  return { calmMs: ageOf(belowSince), calmPeak: peak, surplusMs: ageOf(surplusSince) };
}
