import type { HistoryEvent } from '../history.ts';

/** A file of GET /api/sessions/{id}/files. */
export type SessionFile = {
  name: string;
  bytes: number;
  sha256: string;
  created_at: string;
  origin: 'download' | 'upload';
};

/** A file that is not among the session's, and why. */
export type Refused = { sequence: number; time: string; name: string; why: string };

const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const;

const REASONS: Record<string, string> = {
  too_large: 'larger than a file may be',
  quota: 'the session’s files are as many or as large as they may be',
  name: 'it has no usable name',
  failed: 'cancelled, broken off, or not stored',
};

/** `12 bytes`, `48.2 kB`, `1.5 GB`: decimal, as the API's limits are. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // What would be rounded to 1000 is one of the next unit.
  for (; value >= 999.5 && unit < UNITS.length - 1; unit += 1) value /= 1000;
  const text = unit === 0 || value >= 100 ? String(Math.round(value)) : value.toFixed(1);
  return `${text} ${UNITS[unit]}`;
}

/** What was refused, newest first. */
export function refusedOf(events: readonly HistoryEvent[]): Refused[] {
  return events
    .filter(({ type }) => type === 'session.file-refused')
    .map(({ sequence, time, data }) => {
      const { name, reason } = data as { name: string; reason: string };
      return { sequence, time, name, why: REASONS[reason] ?? reason };
    })
    .toReversed();
}
