import type { SessionState } from '#events/session.ts';
import { organizationSessions, waitingSessions } from '#projections/organization-sessions.ts';
import { idOf } from '#projections/projection.ts';
import { sessionKey } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';
import { Unavailable } from '#src/errors.ts';
import type { Tail } from '#src/event-store/session-events.ts';

/** Where a session stands among those that no server has taken yet; 1 is the next. */
export type QueuePlace = { queue_position: number; estimated_wait_seconds: number | null };

/** How fast the queue moves. */
export type QueuePace = {
  /** Seconds until so many have been served; null where nobody was served lately. */
  secondsFor(count: number): number | null;
};

/** What was served longer ago says nothing of now. */
export const WINDOW_MS = 5 * 60_000;
/** As many of the last are looked at: enough for a mean, and few to keep. */
const SERVED_MAX = 100;

/** Listens to which sessions get their browsers, as long as the tail is there. */
export function startQueuePace(tail: Tail, now: () => number): QueuePace {
  const servedAt: number[] = [];
  // By the events' own times: so the past can be told as it was.
  tail.watchAll(({ type, time }) => {
    if (type !== 'session.activated') return;
    servedAt.push(Date.parse(time));
    if (servedAt.length > SERVED_MAX) servedAt.shift();
  });
  return { secondsFor: (count) => estimate(count, servedAt, now()) };
}

/** At the pace at which the last were served; whole seconds, rounded up. */
export function estimate(count: number, servedAt: readonly number[], now: number): number | null {
  const lately = servedAt.filter((at) => now - at < WINDOW_MS).slice(-SERVED_MAX);
  const [first] = lately;
  if (first === undefined) return null;
  const perServedMs = Math.max(now - first, 1) / lately.length;
  return Math.ceil((count * perServedMs) / 1000);
}

/**
 * A cheap look at a session's view: false where it surely does not wait. A label may say the same.
 */
export function mayWait(view: string): boolean {
  return view.includes('"status":"queued"') || view.includes('"status":"creating"');
}

/** null where it does not wait, a server has it, or the read model is away. */
export async function queuePlace(
  { views, pace }: { views: Views; pace: QueuePace },
  session: SessionState,
): Promise<QueuePlace | null> {
  if (!isWaiting(session)) return null;
  const key = sessionKey(session.organizationId, session.id);
  try {
    const rank = await views.rank(idOf(organizationSessions), waitingSessions, key);
    if (rank === null) return null;
    return { queue_position: rank + 1, estimated_wait_seconds: pace.secondsFor(rank + 1) };
  } catch (error) {
    if (error instanceof Unavailable) return null;
    throw error;
  }
}

/** Whether no server has taken it yet. */
export function isWaiting({ status, assignment }: SessionState): boolean {
  return (status === 'creating' || status === 'queued') && assignment === null;
}
