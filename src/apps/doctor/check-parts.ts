import type { Findings } from './finding.ts';

/** A larger skew makes event times, rate limit windows and token expiry disagree. */
const SKEW_MS_BAD = 1_000;
const SKEW_MS_WARN = 250;

/** Finding about the skew between another server's clock and this machine's. Pure. */
export function checkClockSkew({ ok, warn, bad }: Findings, whose: string, skewMs: number): void {
  const ms = Math.round(skewMs);
  const what = `${whose}’s clock is ${Math.abs(ms)} ms ${ms < 0 ? 'behind' : 'ahead of'} this one`;
  const advice = 'synchronise the clocks of all machines (chrony, systemd-timesyncd)';
  if (Math.abs(ms) >= SKEW_MS_BAD) bad('clock', what, advice);
  else if (Math.abs(ms) >= SKEW_MS_WARN) warn('clock', what, advice);
  else ok('clock', what);
}

/** `2.15.1` is at least `2.12`; false for a text that is not a version. */
export function isVersionAtLeast(version: string, min: string): boolean {
  const parts = version.replace(/^v/, '').split(/[.+-]/).map(Number);
  for (const [at, wanted] of min.split('.').map(Number).entries()) {
    const part = parts[at] ?? 0;
    if (Number.isNaN(part) || part < wanted) return false;
    if (part > wanted) return true;
  }
  return true;
}
