/** A range of time in RFC 3339; `to` is not included. */
export type Range = { from: string; to: string };

const DAY_MS = 86_400_000;
/** Each bar is a request to the API. */
const BARS_MAX = 31;

/** The range of an address; by default from the begin of the month, in UTC, until now. */
export function rangeOf(query: URLSearchParams, at: string | null, now: number): Range {
  const to = at ?? timeOf(query.get('to')) ?? new Date(now).toISOString();
  const month = `${to.slice(0, 7)}-01T00:00:00.000Z`;
  return { from: timeOf(query.get('from')) ?? month, to };
}

function timeOf(date: string | null): string | null {
  const ms = date !== null && /^\d{4}-\d\d-\d\d/.test(date) ? Date.parse(date) : Number.NaN;
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

/** The days of a range in UTC, or as many days together as make at most 31 parts. */
export function partsOf({ from, to }: Range): Range[] {
  const [begin, end] = [Date.parse(from), Date.parse(to)];
  if (end <= begin) return [];
  const first = Math.floor(begin / DAY_MS) * DAY_MS;
  const step = Math.ceil((end - first) / DAY_MS / BARS_MAX) * DAY_MS;
  const parts: Range[] = [];
  for (let at = first; at < end; at += step) {
    const from = new Date(Math.max(at, begin)).toISOString();
    parts.push({ from, to: new Date(Math.min(at + step, end)).toISOString() });
  }
  return parts;
}

/** `2026-11-20`, or `2026-11-20 to 2026-11-22`: the days of a part, in UTC. */
export function daysOf({ from, to }: Range): string {
  const first = from.slice(0, 10);
  const last = new Date(Date.parse(to) - 1).toISOString().slice(0, 10);
  return first === last ? first : `${first} to ${last}`;
}
