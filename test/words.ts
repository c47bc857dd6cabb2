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
  'is heard',
  'are heard',
  'hears of',
  'put right',
] as const;

/**
 * Sentences that may hold a banned phrase, because clients know them: messages of the API. The list
 * only shrinks.
 */
export const ALLOWED_SENTENCES = ['There is nothing at this path.'] as const;

/** A banned phrase as a whole word, whatever its case. */
export const bannedPhrase = new RegExp(`\\b(?:${BANNED_PHRASES.join('|')})\\b`, 'i');

/** The text without the sentences that may hold a banned phrase. */
export function withoutAllowed(text: string): string {
  return ALLOWED_SENTENCES.reduce((left, sentence) => left.replaceAll(sentence, ''), text);
}
