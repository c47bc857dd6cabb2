/**
 * Phrases that hide the subject of a sentence. `tidy.test.ts` refuses them in comments, strings and
 * documents. Name the subject instead: "the caller", "the operator", "a process", "the client".
 */
export const BANNED_PHRASES = [
  'whoever',
  'nobody',
  'for who',
  'those who',
  'is told',
  'are told',
  'be told',
  'was told',
  'amiss',
  'as it was',
  'it says so',
  'is nothing',
  'says of itself',
] as const;

/**
 * Files that hold a banned phrase in a message or a name that is fixed elsewhere. The list only
 * shrinks.
 */
export const NOT_YET = [
  'src/api/schemas/sessions.ts',
  'src/errors.ts',
  'src/messaging/jetstream/redelivery.ts',
  'test/bench/bare-browser.ts',
  'test/contract/messaging/dead-letters.test.ts',
  'test/e2e/api/limits.test.ts',
  'test/integration/telemetry/metrics.test.ts',
] as const;

/** A banned phrase as a whole word, whatever its case. */
export const bannedPhrase = new RegExp(`\\b(?:${BANNED_PHRASES.join('|')})\\b`, 'i');

/** Whether a path is still allowed to hold banned phrases. */
export function isNotYetPlain(path: string): boolean {
  return NOT_YET.some((entry) => path === entry || path.startsWith(`${entry}/`));
}
