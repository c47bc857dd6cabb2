import { BoundedMap } from './bounded-map.ts';

/** Answers kept at once; the oldest goes first. */
const KEPT_MAX = 100;

/**
 * The same answer for `forMs` to all who ask with one key; calls of one key are never made side by
 * side. A failure is not kept.
 */
export function keptBriefly<Answer>(forMs: number) {
  const kept = new BoundedMap<string, { answer: Promise<Answer>; until: number }>(KEPT_MAX);
  return (key: string, ask: () => Promise<Answer>): Promise<Answer> => {
    const known = kept.get(key);
    if (known !== undefined && performance.now() < known.until) return known.answer;
    const own = { answer: ask(), until: Infinity };
    kept.set(key, own);
    own.answer.then(
      () => (own.until = performance.now() + forMs),
      () => kept.get(key) === own && kept.delete(key),
    );
    return own.answer;
  };
}
