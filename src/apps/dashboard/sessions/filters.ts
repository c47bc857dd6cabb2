import type { SessionStatus } from '#events/session.ts';
import type { Row } from './rows.ts';

/** What a list shows, as its address holds it. */
export type Filters = {
  /** Empty: all. */
  statuses: readonly SessionStatus[];
  /** `key=value`; all must match. */
  labels: readonly string[];
  /** In the name or the id. */
  text: string;
  sort: 'newest' | 'oldest';
};

export const STATUSES = [
  'creating',
  'queued',
  'active',
  'stopping',
  'stopped',
  'failed',
] as const satisfies readonly SessionStatus[];

export function filtersOf(query: URLSearchParams): Filters {
  const asked = query.getAll('status');
  return {
    statuses: STATUSES.filter((status) => asked.includes(status)),
    labels: query.getAll('label').filter((label) => label.indexOf('=') > 0),
    text: query.get('q') ?? '',
    sort: query.get('sort') === 'oldest' ? 'oldest' : 'newest',
  };
}

export function queryOf({ statuses, labels, text, sort }: Filters): URLSearchParams {
  const query = new URLSearchParams();
  for (const status of statuses) query.append('status', status);
  for (const label of labels) query.append('label', label);
  if (text !== '') query.set('q', text);
  if (sort === 'oldest') query.set('sort', sort);
  return query;
}

export function isFiltered({ statuses, labels, text }: Filters): boolean {
  return statuses.length > 0 || labels.length > 0 || text !== '';
}

/** The rows to show. `rows` are newest first. */
export function applyFilters(rows: readonly Row[], filters: Filters): readonly Row[] {
  const shown = isFiltered(filters) ? rows.filter((row) => matches(row, filters)) : rows;
  return filters.sort === 'oldest' ? shown.toReversed() : shown;
}

function matches(row: Row, { statuses, labels, text }: Filters): boolean {
  if (statuses.length > 0 && !statuses.includes(row.status)) return false;
  const wanted = text.toLowerCase();
  if (!row.name.toLowerCase().includes(wanted) && !row.id.toLowerCase().includes(wanted))
    return false;
  return labels.every((label) => {
    const border = label.indexOf('=');
    return row.labels?.[label.slice(0, border)] === label.slice(border + 1);
  });
}

export function toggled<Value>(values: readonly Value[], value: Value): readonly Value[] {
  return values.includes(value) ? values.filter((other) => other !== value) : [...values, value];
}

/** Adds a label. Text that is not `key=value`, or a label that is there, changes nothing. */
export function withLabel(labels: readonly string[], label: string): readonly string[] {
  return label.indexOf('=') > 0 && !labels.includes(label) ? [...labels, label] : labels;
}
