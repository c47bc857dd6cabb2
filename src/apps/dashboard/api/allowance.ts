/** What is left of the organization's rate limit, as the last answer said. */
type Allowance = { limit: number; remaining: number; endsAt: number };

/** The dashboard leaves this share of each minute's units to the organization's programs. */
const SHARE_LEFT = 0.5;
const WINDOW_MS = 60_000;

let last: Allowance | null = null;

/** @param headers of an answer to the tab's key; the end of the window is by the service's clock */
export function noteAllowance(headers: Headers): void {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
    Number(headers.get(`x-ratelimit-${name}`) ?? Number.NaN),
  );
  const left = 1000 * (reset ?? Number.NaN) - Date.parse(headers.get('date') ?? '');
  if (limit === undefined || remaining === undefined || Number.isNaN(limit + remaining + left))
    return;
  last = { limit, remaining, endsAt: Date.now() + Math.min(WINDOW_MS, Math.max(0, left)) };
}

/**
 * Resolves at once, or, if half of this minute's units are taken, when the next minute begins. For
 * reading that no person waits for.
 */
export async function untilUnitsAreSpare(): Promise<void> {
  if (last === null || last.remaining > SHARE_LEFT * last.limit) return;
  const waitMs = last.endsAt - Date.now();
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
}
