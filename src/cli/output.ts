/** A table with aligned columns; control characters in cells are escaped. */
export function formatTable(
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
 * Escapes control characters: names and texts come from users and could otherwise steer the
 * operator's terminal.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (sign) => {
    return `\\u{${sign.codePointAt(0)?.toString(16)}}`;
  });
}

/**
 * Splits a text into its first line and the others, each with a mark in front, so that no line of
 * the text can pass for a line of the command's own output. Empty lines are left out.
 */
export function printableLines(text: string): { first: string; others: readonly string[] } {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  const [first = '', ...others] = lines.map(printable);
  return { first, others: others.map((line) => `| ${line}`) };
}

/** `+12ms`, `+3.4s`, `+2m05s`, `+1h02m`: the time between two ISO 8601 times. */
export function formatElapsed(from: string, to: string): string {
  const ms = Date.parse(to) - Date.parse(from);
  return `${ms < 0 ? '-' : '+'}${formatDuration(Math.abs(ms))}`;
}

/** `12ms`, `3.4s`, `2m05s`, `1h02m`. */
export function formatDuration(ms: number): string {
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
