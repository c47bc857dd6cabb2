/** Sessions whose first CDP connection has been seen; the longest known goes first. */
const SESSIONS_MAX = 10_000;

/**
 * Tells the first CDP connection of each session through this gateway from the later ones; one of
 * a session that is 10,000 sessions old may count twice.
 */
export function createFirstTimes(): (sessionId: string) => boolean {
  const seen = new Set<string>();
  return function isFirst(sessionId) {
    if (seen.has(sessionId)) return false;
    seen.add(sessionId);
    const [oldest] = seen;
    if (seen.size > SESSIONS_MAX && oldest !== undefined) seen.delete(oldest);
    return true;
  };
}
