const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Pauses after failed attempts; in sum 75 hours, after which the webhook is disabled. */
export const defaultPauses: readonly number[] = [
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  ...[1, 2, 4, 8, 12, 12, 12, 12, 12].map((hours) => hours * HOUR),
];

/** A receiver may ask for longer pauses up to this one. */
const RETRY_AFTER_MAX_MS = 12 * HOUR;

/**
 * The pause after so many failed attempts in a row, in ms; null: no attempt is left.
 * @param retryAfterMs what the receiver asked for; it only makes the pause longer
 */
export function pauseAfter(
  attempts: number,
  retryAfterMs: number | null,
  pauses: readonly number[] = defaultPauses,
): number | null {
  const pause = pauses[attempts - 1];
  if (pause === undefined) return null;
  return Math.max(pause, grantedPause(retryAfterMs));
}

/** What the receiver gets of the pause that it asked for, in ms. */
export function grantedPause(retryAfterMs: number | null): number {
  return Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS);
}

/** `Retry-After` in ms: seconds, or a date; null: there is none, or it cannot be read. */
export function readRetryAfter(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  if (/^\d{1,9}$/.test(text.trim())) return Number(text.trim()) * SECOND;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
