import { isDeepStrictEqual } from 'node:util';

/** What of a state differs from the one before; `from` is left out where there was none before. */
export type FieldChange = { field: string; from?: unknown; to: unknown };

/** What was not there before and is empty now is no change. */
export function fieldChanges(before: object, after: object): FieldChange[] {
  const old = new Map<string, unknown>(Object.entries(before));
  return Object.entries(after)
    .filter(([field, value]) => !isDeepStrictEqual(old.get(field), value))
    .filter(([field, value]) => old.has(field) || !isEmpty(value))
    .map(([field, to]) => (old.has(field) ? { field, from: old.get(field), to } : { field, to }));
}

/** The same for people, a line a field: `status: "creating" → "active"`. */
export function changesBetween(before: object, after: object): string[] {
  return fieldChanges(before, after).map((change) => {
    const from = 'from' in change ? `${JSON.stringify(change.from)} → ` : '';
    return `${change.field}: ${from}${JSON.stringify(change.to)}`;
  });
}

function isEmpty(value: unknown): boolean {
  return value === null || value === '' || JSON.stringify(value) === '{}';
}
