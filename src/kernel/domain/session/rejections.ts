import type { SessionState } from '#events/session.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { isFinal } from './session.ts';

/** The rejection of what a session that is stopping or has ended can no longer do. */
export function hasEnded({ id, status, endedReason }: SessionState): Rejection {
  return reject('SESSION_ENDED', { session_id: id, status, ended_reason: endedReason });
}

/** The rejection of what needs a browser; null: the session has one and goes on. */
export function notActive(session: SessionState): Rejection | null {
  const { id, status } = session;
  if (status === 'active') return null;
  if (status === 'stopping' || isFinal(status)) return hasEnded(session);
  return reject('SESSION_NOT_READY', { session_id: id, status });
}
