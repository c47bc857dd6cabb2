import { isDeepStrictEqual } from 'node:util';

/** A changed field of a state; `from` is left out if the field did not exist before. */
export type FieldChange = { field: string; from?: unknown; to: unknown };

/** The changed fields. A new field that is empty does not count as a change. */
export function fieldChanges(before: object, after: object): FieldChange[] {
  const old = new Map<string, unknown>(Object.entries(before));
  return Object.entries(after)
    .filter(([field, value]) => !isDeepStrictEqual(old.get(field), value))
    .filter(([field, value]) => old.has(field) || !isEmpty(value))
    .map(([field, to]) => (old.has(field) ? { field, from: old.get(field), to } : { field, to }));
}

function isEmpty(value: unknown): boolean {
  return value === null || value === '' || JSON.stringify(value) === '{}';
}
