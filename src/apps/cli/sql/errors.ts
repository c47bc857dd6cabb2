/** The query is not accepted, or DuckDB could not run it. */
export class QueryRefused extends Error {
  override readonly name = 'QueryRefused';
}

/** Characters of the query that an error shows. */
const NEAR_MAX = 40;

/**
 * DuckDB's message on one line. It shows the place on two lines of its own; they become a position
 * and the text there.
 */
export function describeError(error: unknown, query: string): string {
  const message = error instanceof Error ? error.message : String(error);
  // What DuckDB's binding says of a text without a statement.
  if (message === 'Error in native callback') return 'the query is empty';
  const [, what = message, number, shown = '', blanks = ''] =
    /^(.*?)\s*LINE (\d+): ([^\n]*)\n( *)\^\s*$/s.exec(message) ?? [];
  const text = what
    .replace(/^Failed to [a-z ]+: /, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  if (number === undefined) return text;
  // Of a long line DuckDB shows a part between dots.
  const dots = shown.startsWith('...') ? 3 : 0;
  const part = shown.slice(dots).replace(/\.\.\.$/, '');
  const line = query.split('\n')[Number(number) - 1] ?? '';
  const at = blanks.length - `LINE ${number}: `.length;
  const column = Math.max(line.indexOf(part), 0) - dots + at + 1;
  const rest = shown.slice(at).trim();
  const near = rest === '' ? 'at the end' : `at ${JSON.stringify(rest.slice(0, NEAR_MAX))}`;
  return `${text} (line ${number}, column ${column}, ${near})`;
}
