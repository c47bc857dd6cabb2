import type { SessionState } from '#events/session.ts';
import { organizationSessions, waitingSessions } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { sessionKey } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { SessionEvents } from '#src/kernel/event-store/session-events.ts';

/** A session's place among those that no server has accepted yet; 1 is the next. */
export type QueuePlace = { queue_position: number; estimated_wait_seconds: number | null };

/** How fast the queue moves. */
export type QueuePace = {
  /** Seconds until `count` sessions have got a browser; null if none did lately. */
  secondsFor(count: number): number | null;
};

/** Older assignments say nothing of the present pace. */
export const WINDOW_MS = 5 * 60_000;
/** Latest assignments that are used: enough for a mean, and few to keep. */
const SERVED_MAX = 100;

/** Observes which sessions get their browsers, until the subscription ends. */
export function startQueuePace(sessionEvents: SessionEvents, now: () => number): QueuePace {
  const servedAt: number[] = [];
  // By the events' own times, so that a query for the past computes the same.
  sessionEvents.watchAll(({ type, time }) => {
    if (type !== 'session.activated') return;
    servedAt.push(Date.parse(time));
    if (servedAt.length > SERVED_MAX) servedAt.shift();
  });
  return { secondsFor: (count) => estimate(count, servedAt, now()) };
}

/** At the pace of the latest assignments; whole seconds, rounded up. */
export function estimate(count: number, servedAt: readonly number[], now: number): number | null {
  const lately = servedAt.filter((at) => now - at < WINDOW_MS).slice(-SERVED_MAX);
  const [first] = lately;
  if (first === undefined) return null;
  const perServedMs = Math.max(now - first, 1) / lately.length;
  return Math.ceil((count * perServedMs) / 1000);
}

/**
 * The place of a session that waits for a server; null if the read model does not say so, or is
 * unavailable.
 */
export async function queuePlace(
  { views, pace }: { views: Views; pace: QueuePace },
  session: SessionState,
): Promise<QueuePlace | null> {
  const key = sessionKey(session.organizationId, session.id);
  try {
    const rank = await views.rank(projectionId(organizationSessions), waitingSessions, key);
    if (rank === null) return null;
    return { queue_position: rank + 1, estimated_wait_seconds: pace.secondsFor(rank + 1) };
  } catch (error) {
    if (error instanceof Unavailable) return null;
    throw error;
  }
}
