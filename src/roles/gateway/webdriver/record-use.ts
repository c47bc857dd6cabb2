import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
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
  const usedAt = new BoundedMap<string, number>(SESSIONS_MAX);
  return (ticket) => {
    const key = `${ticket.organizationId}/${ticket.sessionId}`;
    const at = now();
    if (Math.abs(at - (usedAt.get(key) ?? -Infinity)) < everyMs) return;
    usedAt.set(key, at);
    onUse(ticket);
  };
}
