export { formatDuration, formatElapsed } from '#src/kernel/history/elapsed.ts';

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
