/** A value that is named as a secret, and is not removed yet. */
const NAMED = new RegExp(
  '\\b((?:pass(?:word|wd)?|token|secret|api[-_]?key|authorization|cookie)["\']?\\s*[=:]\\s*)' +
    '(?!…)\\S+',
  'gi',
);

/**
 * Removes credentials from a program's output, for the log and the event. Chromium prints the path
 * of its CDP socket at each start, and URLs with all they contain.
 */
export function redact(text: string, secrets: readonly string[] = []): string {
  const known = secrets.filter((secret) => secret !== '');
  const without = known.reduce((left, secret) => left.replaceAll(secret, '…'), text);
  return without
    .replaceAll(/(\/devtools\/(?:browser|page)\/)[\w-]+/g, '$1…')
    .replaceAll(/([a-z][a-z0-9+.-]*:\/\/)[^\s/@'"]+@/gi, '$1…@')
    .replaceAll(/([a-z][a-z0-9+.-]*:\/\/[^\s?'"]*)\?[^\s'"]*/gi, '$1?…')
    .replaceAll(/\b(Bearer|Basic)\s+[\w.~+/=-]+/gi, '$1 …')
    .replaceAll(NAMED, '$1…')
    .replaceAll(/\bbss_[A-Za-z0-9_-]+/g, 'bss_…');
}
