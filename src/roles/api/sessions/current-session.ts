import { isId } from '#events/subjects.ts';
import type { SessionState } from '#events/session.ts';
import { projectionId } from '#projections/projection.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { reject, Unavailable, type Rejection } from '#src/kernel/errors.ts';
import { loadSession, type ApiDependencies } from '../dependencies.ts';

/** Seconds after which a waiting session may have its browser. */
const RETRY_AFTER_SECONDS = 1;

/** SESSION_NOT_READY or SESSION_ENDED; null: the session has its browser. */
export function notActive({
  id,
  status,
  endedReason,
}: Pick<SessionState, 'id' | 'status' | 'endedReason'>): Rejection | null {
  if (status === 'active') return null;
  if (status === 'stopping' || isFinal(status))
    return reject('SESSION_ENDED', { session_id: id, status, ended_reason: endedReason });
  const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
  return reject('SESSION_NOT_READY', { session_id: id, status }, retry);
}

/**
 * The session's view as JSON text; null if the organization has no session of that id. The read
 * model answers only while it holds all that this process has seen, so that no reader steps back in
 * time; the event store decides on sessions that it does not have.
 */
export async function currentSessionView(
  { context, views, sessionEvents }: ApiDependencies,
  organizationId: string,
  id: string,
): Promise<string | null> {
  if (!isId(id)) return null;
  const seen = sessionEvents.position();
  try {
    const key = sessionKey(organizationId, id);
    const { view, checkpoint } = await views.readWithCheckpoint(projectionId(sessionView), key);
    if (view !== null && checkpoint >= seen) return view;
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
  }
  const session = await loadSession(context, organizationId, id);
  return session === null ? null : JSON.stringify(session.state);
}
