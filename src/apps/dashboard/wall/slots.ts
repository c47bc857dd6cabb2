import { applyFilters } from '../sessions/filters.ts';
import { isOver, type Row } from '../sessions/rows.ts';

/** Screens of a wall. */
export const SIZES = [4, 9, 16] as const;
export type Size = (typeof SIZES)[number];
/** How long the last picture of an ended session keeps its place. */
export const KEPT_MS = 8_000;
/** A tile asks for a picture at most once in this time. */
export const EVERY_MS = 1_000;
/** The part of the organization's requests that a wall may take. */
const SHARE = 0.5;

/** What a wall shows, as its address holds it. */
export type WallView = {
  size: Size;
  /** `key=value`; all must match. */
  labels: readonly string[];
  /** In the name or the id. */
  text: string;
  /** Ids of sessions that are shown whatever the filter says. */
  pins: readonly string[];
};

export function viewOf(query: URLSearchParams): WallView {
  const asked = Number(query.get('size'));
  return {
    size: SIZES.find((size) => size === asked) ?? 9,
    labels: query.getAll('label').filter((label) => label.indexOf('=') > 0),
    text: query.get('q') ?? '',
    pins: query.getAll('pin').slice(0, 16),
  };
}

export function queryOfView({ size, labels, text, pins }: WallView): URLSearchParams {
  const query = new URLSearchParams();
  if (size !== 9) query.set('size', `${size}`);
  for (const label of labels) query.append('label', label);
  if (text !== '') query.set('q', text);
  for (const pin of pins) query.append('pin', pin);
  return query;
}

/** A place of the wall. `endedAt`: since when its session is known to be over. */
export type Slot = { id: string; endedAt: number | null };

/** The sessions that may be on the wall, pinned ones first, then the newest. */
export function candidatesOf(rows: readonly Row[], view: WallView): readonly Row[] {
  const { labels, text } = view;
  const active = rows.filter(({ status }) => status === 'active');
  const pinned = active.filter(({ id }) => view.pins.includes(id));
  const matching = applyFilters(active, { statuses: [], labels, text, sort: 'newest' });
  return [...pinned, ...matching.filter(({ id }) => !view.pins.includes(id))];
}

/**
 * The places after a change. A session keeps its place until it has been over for a while; then the
 * next candidate takes it. A pinned session that has no place takes that of the last that is not.
 */
export function nextSlots(
  slots: readonly Slot[],
  rows: readonly Row[],
  view: WallView,
  now: number,
): readonly Slot[] {
  const candidates = candidatesOf(rows, view);
  const live = new Set(candidates.map(({ id }) => id));
  const known = new Map(rows.map((row) => [row.id, row]));
  const kept = slots.slice(0, view.size).map((slot): Slot | null => {
    if (live.has(slot.id)) return slot.endedAt === null ? slot : { id: slot.id, endedAt: null };
    const row = known.get(slot.id);
    if (row === undefined || row.status === 'active') return null;
    if (!isOver(row)) return slot;
    const endedAt = slot.endedAt ?? now;
    if (now - endedAt >= KEPT_MS) return null;
    return slot.endedAt === endedAt ? slot : { id: slot.id, endedAt };
  });
  while (kept.length < view.size) kept.push(null);
  const shown = new Set(kept.flatMap((slot) => slot?.id ?? []));
  for (const { id } of candidates) {
    if (shown.has(id)) continue;
    let place = kept.indexOf(null);
    if (place === -1 && view.pins.includes(id))
      place = kept.findLastIndex((slot) => slot !== null && !view.pins.includes(slot.id));
    if (place === -1) break;
    kept[place] = { id, endedAt: null };
  }
  return kept.filter((slot) => slot !== null);
}

/**
 * The time between two pictures of a tile: a second, or so much longer that all tiles together take
 * half of the organization's requests.
 * @param limit requests a minute; null: not known
 */
export function intervalOf(tiles: number, limit: number | null): number {
  if (limit === null || limit <= 0) return EVERY_MS;
  return Math.max(EVERY_MS, Math.ceil((tiles * 60_000) / (limit * SHARE)));
}
