import type { DuckDBValue } from '@duckdb/node-api';

/** A value of a result, as JSON has it. */
export type Plain =
  | string
  | number
  | boolean
  | null
  | readonly Plain[]
  | { readonly [key: string]: Plain };

/**
 * A whole number beyond 2^53 is text, a time ISO 8601 in UTC, a map or struct an object.
 * @param isJson whether the column holds JSON
 */
export function toPlain(value: DuckDBValue, isJson = false): Plain {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value === 'string') return isJson ? (JSON.parse(value) as Plain) : value;
  if (typeof value === 'bigint') return safeNumber(value);
  if ('items' in value) return value.items.map((item) => toPlain(item));
  if ('entries' in value && Array.isArray(value.entries))
    return Object.fromEntries(
      (value.entries as { key: DuckDBValue; value: DuckDBValue }[]).map(({ key, value }) => [
        String(key),
        toPlain(value),
      ]),
    );
  if ('entries' in value)
    return Object.fromEntries(
      Object.entries(value.entries as Record<string, DuckDBValue>).map(([key, value]) => [
        key,
        toPlain(value),
      ]),
    );
  if ('scale' in value && 'value' in value) return Number(String(value));
  // Beyond what a Date holds, and infinity, as DuckDB shows them.
  if ('micros' in value && 'isFinite' in value) return isoTime(value.micros) ?? String(value);
  return String(value);
}

function safeNumber(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

function isoTime(micros: bigint): string | null {
  const time = new Date(Number(micros / 1000n));
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}
