import type { SourceFile } from './source-files.ts';

/** `<file>:<line> <text>` for each line of code, comments aside, in which the pattern is found. */
export function codeWith(from: readonly SourceFile[], pattern: RegExp): string[] {
  return textWith(
    from.map(({ path, code }) => ({ path, text: code })),
    pattern,
  );
}

/** The same for each line of the text. */
export function textWith(
  from: readonly { path: string; text: string }[],
  pattern: RegExp,
): string[] {
  return from.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) =>
        pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [],
      ),
  );
}
