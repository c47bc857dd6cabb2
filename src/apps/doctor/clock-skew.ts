/** On a busy machine one answer may take long; the fastest of several is the most precise. */
const SAMPLES = 5;

/**
 * How far another clock is ahead of this process's at least, in ms (negative: behind). The possible
 * transit time of the answer is subtracted. null if the answer has no time.
 */
export async function clockSkewMs(askTime: () => Promise<number>): Promise<number | null> {
  let best: { skewMs: number; doubtMs: number } | null = null;
  for (let time = 1; time <= SAMPLES; time += 1) {
    const askedAt = Date.now();
    const answered = await askTime();
    const doubtMs = (Date.now() - askedAt) / 2;
    if (Number.isNaN(answered)) return null;
    if (best === null || doubtMs < best.doubtMs)
      best = { skewMs: answered - askedAt - doubtMs, doubtMs };
  }
  if (best === null) return null;
  return Math.sign(best.skewMs) * Math.max(0, Math.abs(best.skewMs) - best.doubtMs);
}
