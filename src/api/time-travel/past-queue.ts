import type { SessionState } from '#events/session.ts';
import { filters, filtersFor } from '#events/subjects.ts';
import { organizationSessions, waitingSessions } from '#projections/organization-sessions.ts';
import { sessionKey } from '#projections/session-view.ts';
import { Unavailable } from '#src/errors.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import { sequenceAt } from '../../log/past.ts';
import { readRange } from '#src/event-store/read-range.ts';
import { foldUpTo, nothing } from './past-fold.ts';
import { estimate, isWaiting, WINDOW_MS, type QueuePlace } from '../sessions/queue-place.ts';

/** A timer may be late; a session then waits a little longer than any may. */
const LATE_MS = 60_000;

/**
 * Where a session stood in the queue at a moment; null where it did not wait. Who waited with it
 * was asked for at most as long ago as any may wait, and so the log is read from there alone.
 */
export async function queuePlaceAt(
  desk: Desk,
  session: SessionState,
  { at, upTo, queueTimeoutMs }: { at: number; upTo: number; queueTimeoutMs: number },
): Promise<QueuePlace | null> {
  if (!isWaiting(session)) return null;
  const { log } = desk;
  const begin = await sequenceAt(desk, at - queueTimeoutMs - LATE_MS);
  const from = { ...nothing, upTo: begin };
  const folded = await foldUpTo(log, organizationSessions, filters.sessions, { from, upTo });
  if (!folded.isWhole) throw new Unavailable('event-log', new Error('too much to fold at once'));
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
  const servedAt = await servedUpTo(desk, at, upTo);
  return { queue_position: position, estimated_wait_seconds: estimate(position, servedAt, at) };
}

/** When sessions got their browsers in the last minutes before, as the pace of the queue has it. */
async function servedUpTo(desk: Desk, at: number, upTo: number): Promise<number[]> {
  const after = await sequenceAt(desk, at - WINDOW_MS);
  const subjects = filtersFor(null, 'session.activated');
  const servedAt: number[] = [];
  const range = { subjects, after, upTo, onMalformed: () => undefined };
  for await (const batch of readRange(desk.log, range))
    servedAt.push(...batch.map(({ time }) => Date.parse(time)));
  return servedAt;
}
