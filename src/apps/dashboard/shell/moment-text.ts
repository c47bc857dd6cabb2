/** The moment that a page shows: after an event, or at a time. */
export type Moment = { sequence: number } | { time: string };

/** The moment that a text names, as `?at=` holds it; null: none. */
export function momentOf(text: string | null): Moment | null {
  if (text === null || text === '') return null;
  if (/^[1-9]\d{0,15}$/.test(text)) return { sequence: Number(text) };
  const time = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? null : { time: new Date(time).toISOString() };
}

export function textOf(at: Moment): string {
  return 'sequence' in at ? `${at.sequence}` : at.time;
}
