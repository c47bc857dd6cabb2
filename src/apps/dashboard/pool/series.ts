/** The pool's counters over time: which of them a page shows, and how it asks for them. */

export const COUNTERS = [
  { name: 'total', title: 'Browsers' },
  { name: 'idle', title: 'Idle' },
  { name: 'busy', title: 'Busy' },
  { name: 'provisioning', title: 'Provisioning' },
  { name: 'launching', title: 'Launching' },
  { name: 'terminating', title: 'Terminating' },
  { name: 'waiting', title: 'Sessions waiting' },
] as const;
export type CounterName = (typeof COUNTERS)[number]['name'];

/** The counters at a time of the API. */
export type Point = { at: string } & Record<CounterName, number>;
export type Series = { points: Point[] };

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** `stepMs`: between two points, whole seconds; `refreshMs`: how often it is read again. */
export const RANGES = [
  { name: '15m', title: '15 min', ms: 15 * MINUTE_MS, stepMs: 10_000, refreshMs: 10_000 },
  { name: '1h', title: '1 h', ms: 60 * MINUTE_MS, stepMs: 30_000, refreshMs: 30_000 },
  { name: '24h', title: '24 h', ms: DAY_MS, stepMs: 12 * MINUTE_MS, refreshMs: 2 * MINUTE_MS },
  { name: '7d', title: '7 d', ms: 7 * DAY_MS, stepMs: 84 * MINUTE_MS, refreshMs: 10 * MINUTE_MS },
] as const;
export type Range = (typeof RANGES)[number];

/** The range that a text names, as `?range=` holds it; an hour for none. */
export function rangeOf(text: string | null): Range {
  return RANGES.find(({ name }) => name === text) ?? RANGES[1];
}

/**
 * Where the chart of a moment ends: half a range after it, so that it stands in the middle, but not
 * in the future. Ends lie on steps, so that a point is at the same time whenever it is asked for.
 * @param momentMs null: it ends now
 */
export function endOf(momentMs: number | null, { ms, stepMs }: Range, now: number): number {
  const wanted = momentMs === null ? now : Math.min(now, momentMs + ms / 2);
  return Math.floor(wanted / stepMs) * stepMs;
}

/** @param isPast whether it ends before now; else the service answers up to its own now. */
export function seriesQuery(end: number, { ms, stepMs }: Range, isPast: boolean): string {
  const from = new Date(end - ms).toISOString();
  const to = isPast ? `&to=${new Date(end).toISOString()}` : '';
  return `?from=${from}${to}&step=${stepMs / 1000}`;
}

/** The index of the last point at or before a time; -1: none. */
export function indexAt(points: readonly Point[], ms: number): number {
  return points.findLastIndex(({ at }) => Date.parse(at) <= ms);
}

/** The points, and the counters of now if they are newer. */
export function withNow(points: readonly Point[], now: Point | null): readonly Point[] {
  const last = points.at(-1);
  return now === null || (last !== undefined && last.at >= now.at) ? points : [...points, now];
}

/** `4 browsers: 2 idle, 2 busy. 1 session waits.` What is 0 is left out. */
export function sentenceOfPoint(point: Point): string {
  const states = (['idle', 'busy', 'provisioning', 'launching', 'terminating'] as const)
    .filter((name) => point[name] > 0)
    .map((name) => `${point[name]} ${name}`);
  const { total, waiting } = point;
  const browsers = total === 1 ? '1 browser' : `${total} browsers`;
  const who = waiting === 1 ? '1 session waits' : `${waiting} sessions wait`;
  return `${[browsers, ...(states.length > 0 ? [states.join(', ')] : [])].join(': ')}. ${who}.`;
}
