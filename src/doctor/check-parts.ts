import type { Findings } from './finding.ts';

/** Clocks further apart make times in the log, windows of limits and tokens disagree. */
const SKEW_MS_BAD = 1_000;
const SKEW_MS_WARN = 250;

/** How far another's clock is from this process's. Pure. */
export function judgeSkew({ ok, warn, bad }: Findings, whose: string, skewMs: number): void {
  const ms = Math.round(skewMs);
  const what = `${whose}’s clock is ${Math.abs(ms)} ms ${ms < 0 ? 'behind' : 'ahead of'} this one`;
  const advice = 'let all machines follow one source of time (chrony, systemd-timesyncd)';
  if (Math.abs(ms) >= SKEW_MS_BAD) bad('clock', what, advice);
  else if (Math.abs(ms) >= SKEW_MS_WARN) warn('clock', what, advice);
  else ok('clock', what);
}

/** `2.15.1` is at least `2.12`; what is no version is not. */
export function isVersionAtLeast(version: string, min: string): boolean {
  const parts = version.replace(/^v/, '').split(/[.+-]/).map(Number);
  for (const [at, wanted] of min.split('.').map(Number).entries()) {
    const part = parts[at] ?? 0;
    if (Number.isNaN(part) || part < wanted) return false;
    if (part > wanted) return true;
  }
  return true;
}
