import type { SessionState } from '#events/session.ts';
import { idleAt } from './decide.ts';
import { isAwaitingServer, isFinal } from './session.ts';

/**
 * When time ends the session if nothing else happens (ms since the epoch): its expiry, its idle
 * timeout or its queue timeout, whichever is first; null if it is ending or has ended.
 */
export function endsAt(session: SessionState, queueTimeoutMs: number): number | null {
  if (isFinal(session.status) || session.status === 'stopping') return null;
  const queueTimeoutAt = isAwaitingServer(session)
    ? Date.parse(session.createdAt) + queueTimeoutMs
    : Infinity;
  return Math.min(Date.parse(session.expiresAt), idleAt(session) ?? Infinity, queueTimeoutAt);
}
