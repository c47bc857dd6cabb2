/** On a busy machine one answer may take long, and then says little. */
const ASKED_TIMES = 5;

/**
 * How far another's clock is ahead of this process's (below 0: behind), at least: what an answer's
 * way may have taken is left out. null where it does not tell the time.
 */
export async function clockSkewMs(askTime: () => Promise<number>): Promise<number | null> {
  let best: { skewMs: number; doubtMs: number } | null = null;
  for (let time = 1; time <= ASKED_TIMES; time += 1) {
    const askedAt = Date.now();
    const told = await askTime();
    const doubtMs = (Date.now() - askedAt) / 2;
    if (Number.isNaN(told)) return null;
    if (best === null || doubtMs < best.doubtMs)
      best = { skewMs: told - askedAt - doubtMs, doubtMs };
  }
  if (best === null) return null;
  return Math.sign(best.skewMs) * Math.max(0, Math.abs(best.skewMs) - best.doubtMs);
}
