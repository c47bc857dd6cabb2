/** Rows under their heads, the columns aligned; cells are made fit for a terminal. */
export function layOut(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const cells = [heads, ...rows].map((row) => row.map(printable));
  const widths = heads.map((_, column) =>
    Math.max(...cells.map((row) => (row[column] ?? '').length)),
  );
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/**
 * Names and texts are the users' own: what would steer the terminal of the one who reads them is
 * shown, not obeyed.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (sign) => {
    return `\\u{${sign.codePointAt(0)?.toString(16)}}`;
  });
}

/**
 * A text of several lines, the empty ones left out: the first, and the others each behind a mark,
 * so that none of them can pass for a line of the command's own.
 */
export function printableLines(text: string): { first: string; others: readonly string[] } {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  const [first = '', ...others] = lines.map(printable);
  return { first, others: others.map((line) => `| ${line}`) };
}

/** `+12ms`, `+3.4s`, `+2m05s`, `+1h02m`: from one moment (ISO 8601) to a later one. */
export function elapsed(from: string, to: string): string {
  const ms = Date.parse(to) - Date.parse(from);
  return `${ms < 0 ? '-' : '+'}${lengthOf(Math.abs(ms))}`;
}

/** `12ms`, `3.4s`, `2m05s`, `1h02m`. */
export function lengthOf(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (ms < 1000) return `${ms}ms`;
  if (minutes === 0) return `${(ms / 1000).toFixed(1)}s`;
  if (minutes < 60) return `${minutes}m${two(seconds % 60)}s`;
  return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
