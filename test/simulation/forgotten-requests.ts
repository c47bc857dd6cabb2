import { isOf, type RecordedEvent } from '#events/events.ts';
import type { Facts } from './invariants.ts';

/**
 * So long before a time-out a request must have been taken by a server with room: a queue gives an
 * item that was delivered to an ended process to the next one after 30 s, of 60.
 */
const ROOM_FOR_MS = 25_000;

/**
 * Sessions that failed for want of a browser although for some time before nothing was wrong and a
 * server had room: their requests were lost on the way.
 */
export function forgottenRequests({ log, storedAt, healedAt }: Facts): string[] {
  const found: string[] = [];
  const servers = new Map<string, number>();
  const taken = new Set<string>();
  /** Since when there is room; null: there is none. */
  let roomSince: number | null = null;
  for (const [index, event] of log.entries()) {
    const now = storedAt[index] ?? 0;
    if (isQueueTimeout(event) && isRoomy(roomSince, healedAt, now))
      found.push(`${event.aggregate.id} failed at ${event.sequence}, and there was room`);
    if (isOf('server', event) && event.state !== null) {
      const { id, status, poolMax } = event.state;
      servers.set(id, status === 'live' ? poolMax : 0);
      // A server that has just joined needs a moment.
      if (event.type === 'server.joined') roomSince = null;
    }
    if (isOf('workload', event)) {
      if (event.type === 'workload.terminated') taken.delete(event.aggregate.id);
      else if (event.state?.status !== 'idle') taken.add(event.aggregate.id);
      else taken.delete(event.aggregate.id);
    }
    const room = [...servers.values()].reduce((sum, max) => sum + max, 0) - taken.size;
    roomSince = room > 0 ? (roomSince ?? now) : null;
  }
  return found;
}

type SessionEvent = Extract<RecordedEvent, { aggregate: { kind: 'session' } }>;

function isQueueTimeout(event: RecordedEvent): event is SessionEvent {
  return (
    isOf('session', event) &&
    event.type === 'session.failed' &&
    event.data.reason === 'queue_timeout'
  );
}

function isRoomy(roomSince: number | null, healedAt: number, now: number): boolean {
  return roomSince !== null && now - Math.max(roomSince, healedAt) > ROOM_FOR_MS;
}
