import { reject, type Rejection } from '#src/kernel/errors.ts';

const MINUTE = 60_000;

export const DURATION_MIN_MS = MINUTE;
export const DURATION_MAX_MS = 24 * 60 * MINUTE;
export const DURATION_DEFAULT_MS = 2 * 60 * MINUTE;

/** Up to four digits per part: enough for 24 hours in minutes, and small enough to add exactly. */
const PARTS = /^(?:(\d{1,4})h)?(?:(\d{1,4})m)?$/;

/**
 * Parses `30m`, `1h`, `1h30m`: an hour part, a minute part, or both in that order, lower case.
 * Returns milliseconds between 1 minute and 24 hours; null for anything else, of any type.
 */
export function parseDuration(text: unknown): number | null {
  if (typeof text !== 'string' || text === '') return null;
  const parts = PARTS.exec(text);
  if (parts === null) return null;
  const ms = (Number(parts[1] ?? 0) * 60 + Number(parts[2] ?? 0)) * MINUTE;
  return ms >= DURATION_MIN_MS && ms <= DURATION_MAX_MS ? ms : null;
}

/** Milliseconds as `1h30m`; whole minutes, rounded up. */
export function formatDuration(ms: number): string {
  const minutes = minutesOf(ms);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  if (hours === 0) return `${rest}m`;
  return rest === 0 ? `${hours}h` : `${hours}h${rest}m`;
}

/** Whole minutes, rounded up: the price of a time in credits. */
export function minutesOf(ms: number): number {
  return Math.ceil(Math.max(0, ms) / MINUTE);
}

/** The rejection of a valid duration that exceeds the maximum lifetime of a session. */
export function beyondLifetime(duration: string, maxLifetimeMs: number): Rejection {
  const longest = `a session lives ${formatDuration(maxLifetimeMs)} at most`;
  return reject(
    'INVALID_DURATION',
    { duration, max_lifetime_minutes: minutesOf(maxLifetimeMs) },
    { message: `Duration must be between 1 minute and 24 hours, and ${longest}.` },
  );
}
