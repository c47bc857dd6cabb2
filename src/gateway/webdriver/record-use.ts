import type { Ticket } from '../access/ticket.ts';

/** Sessions whose last use is remembered; the oldest is dropped first and recorded again. */
const SESSIONS_MAX = 10_000;

/**
 * Commands use a session, at most once in so many ms.
 * @param now ms since the epoch
 */
export function createUseRecorder(
  onUse: (ticket: Ticket) => void,
  { everyMs, now }: { everyMs: number; now: () => number },
): (ticket: Ticket) => void {
  const usedAt = new Map<string, number>();
  return (ticket) => {
    const key = `${ticket.organizationId}/${ticket.sessionId}`;
    const at = now();
    if (Math.abs(at - (usedAt.get(key) ?? -Infinity)) < everyMs) return;
    usedAt.delete(key);
    usedAt.set(key, at);
    const [oldest] = usedAt.keys();
    if (usedAt.size > SESSIONS_MAX && oldest !== undefined) usedAt.delete(oldest);
    onUse(ticket);
  };
}
