import type { SessionState } from '#events/session.ts';
import { filters, filtersFor } from '#events/subjects.ts';
import { organizationSessions, waitingSessions } from '#projections/organization-sessions.ts';
import { sessionKey } from '#projections/session-view.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import { sequenceAt } from '#src/kernel/event-store/load-state.ts';
import { foldUpTo, nothing } from './past-fold.ts';
import { isAwaitingServer } from '#src/kernel/domain/session/session.ts';
import { estimate, WINDOW_MS, type QueuePlace } from '../sessions/queue-place.ts';

/** The one fold of a place in the queue is not divided: so long, others wait for their turn. */
const FOLD_MS = 2_000;
/** A timer may be late; a session then waits a little longer than the time-out. */
export const LATE_MS = 60_000;

/**
 * A session's place in the queue at a moment; null if it did not wait. Sessions that waited with it
 * were requested at most one queue time-out before, so the event store is read from there only.
 */
export async function queuePlaceAt(
  context: CommandContext,
  session: SessionState,
  { at, upTo, queueTimeoutMs }: { at: number; upTo: number; queueTimeoutMs: number },
): Promise<QueuePlace | null> {
  if (!isAwaitingServer(session)) return null;
  const { eventStore } = context;
  const begin = await sequenceAt(context, at - queueTimeoutMs - LATE_MS);
  const from = { ...nothing, upTo: begin };
  const folded = await foldUpTo(eventStore, organizationSessions, filters.sessions, {
    from,
    upTo,
    withinMs: FOLD_MS,
  });
  if (!folded.isWhole)
    throw new Unavailable('event-log', new Error('too many events to fold in one request'));
  const { views } = folded;
  const key = sessionKey(session.organizationId, session.id);
  const own = views.get(key);
  if (own === undefined) return null;
  const before = [...views].filter(
    ([other, { names, order }]) =>
      names.has(waitingSessions) &&
      (order < own.order ||
        (order === own.order && Buffer.compare(Buffer.from(other), Buffer.from(key)) < 0)),
  );
  const position = before.length + 1;
  const servedAt = await servedUpTo(context, at, upTo);
  return { queue_position: position, estimated_wait_seconds: estimate(position, servedAt, at) };
}

/** When sessions got their browsers in the last minutes before the moment, for the queue's pace. */
async function servedUpTo(context: CommandContext, at: number, upTo: number): Promise<number[]> {
  const after = await sequenceAt(context, at - WINDOW_MS);
  const subjects = filtersFor(null, 'session.activated');
  const servedAt: number[] = [];
  const range = { subjects, after, upTo, includesArchive: true, onUnreadable: refuseUnknown };
  for await (const batch of context.eventStore.read(range))
    servedAt.push(...batch.map(({ time }) => Date.parse(time)));
  return servedAt;
}
