import type { StoredView } from '../store/maintenance.ts';
import type { ViewWrite } from '../store/views.ts';

/** One difference between a stored view and a fresh fold; values as text or JSON. */
export type Difference = { key: string; path: string; stored: string; folded: string };

/** Compares a stored view with a fresh fold of its events, field by field. */
export function differencesOf(
  key: string,
  held: StoredView | null,
  folded: ViewWrite | null,
): Difference[] {
  const at = (path: string, stored: string, expected: string) =>
    [{ key, path, stored, folded: expected }] satisfies Difference[];
  if (folded === null)
    return held === null ? [] : at('view', held.view ?? 'parts of one', 'there is none');
  if (held === null || held.view === null) return at('view', 'there is none', folded.view ?? '');
  const differences = compareTexts(held.view, folded.view ?? '').map(
    ([path, stored, expected]): Difference => ({ key, path, stored, folded: expected }),
  );
  if (held.sequence !== folded.sequence)
    differences.push(...at('sequence', `${held.sequence}`, `${folded.sequence}`));
  const [stands, belongs] = [placeOf(held), placeOf(folded)];
  if (stands !== belongs) differences.push(...at('lists', stands, belongs));
  for (const list of held.missingIn)
    differences.push(...at(`list ${list}`, 'does not stand in its place', 'does'));
  return differences;
}

function placeOf({ lists, order }: Pick<ViewWrite, 'lists' | 'order'>): string {
  if (lists.length === 0) return 'none';
  return JSON.stringify({ lists: lists.map((name) => name.toWellFormed()), order });
}

type Pair = [path: string, stored: string, folded: string];

function compareTexts(stored: string, folded: string): Pair[] {
  if (stored === folded) return [];
  let value: unknown;
  try {
    value = JSON.parse(stored);
  } catch {
    return [['view', `no JSON: ${stored}`, folded]];
  }
  const pairs = compareValues('', value, JSON.parse(folded));
  return pairs.length > 0 ? pairs : [['view', stored, folded]];
}

function compareValues(path: string, stored: unknown, folded: unknown): Pair[] {
  if (isPlain(stored) && isPlain(folded)) {
    const names = new Set([...Object.keys(folded), ...Object.keys(stored)]);
    return [...names].flatMap((name) =>
      compareValues(path === '' ? name : `${path}.${name}`, stored[name], folded[name]),
    );
  }
  const [one, other] = [textOf(stored), textOf(folded)];
  return one === other ? [] : [[path === '' ? 'view' : path, one, other]];
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}
