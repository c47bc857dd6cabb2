import { isOf, type RecordedEvent } from '#events/events.ts';
import type { Facts } from './invariants.ts';

/**
 * So long before a time-out a request must have been taken by a server with room: an item that was
 * delivered to a killed process is delivered again after 8 s (`LEASE_MS` of simulate.ts).
 */
const ROOM_FOR_MS = 12_000;

/**
 * Sessions that ended for want of a browser although for some time before nothing was wrong and a
 * server had room: their requests were lost on the way.
 */
export function forgottenRequests({ log, storedAt, healedAt }: Facts): string[] {
  const found: string[] = [];
  const requestedAt = new Map<string, number>();
  const room = trackRoom();
  for (const [index, event] of log.entries()) {
    const now = storedAt[index] ?? 0;
    if (isOf('session', event)) {
      const { id } = event.aggregate;
      if (event.type === 'session.requested') requestedAt.set(id, now);
      if (event.type === 'session.activated') requestedAt.delete(id);
      const calmSince = Math.max(room.since(), healedAt, requestedAt.get(id) ?? Infinity);
      if (isTimeUp(event) && now - calmSince > ROOM_FOR_MS)
        found.push(`${id} got no browser until ${event.sequence}, and there was room`);
    }
    room.take(event, now);
  }
  return found;
}

/** Since when a server has room for a browser; Infinity: none has. */
function trackRoom() {
  const places = new Map<string, number>();
  const taken = new Set<string>();
  let since = Infinity;
  return {
    since: () => since,
    take(event: RecordedEvent, now: number): void {
      // A server that has just joined needs a moment.
      if (event.type === 'server.joined') since = Infinity;
      if (isOf('server', event) && event.state !== null) {
        const { id, status, poolMax } = event.state;
        places.set(id, status === 'live' ? poolMax : 0);
      } else if (isOf('workload', event) && event.state !== null) {
        const { id, status } = event.state;
        if (status === 'terminated' || status === 'idle') taken.delete(id);
        else taken.add(id);
      } else return;
      const free = [...places.values()].reduce((sum, max) => sum + max, 0) - taken.size;
      since = free > 0 ? Math.min(since, now) : Infinity;
    },
  };
}

function isTimeUp(event: RecordedEvent): boolean {
  if (!isOf('session', event)) return false;
  if (event.type === 'session.failed') return event.data.reason === 'queue_timeout';
  return event.type === 'session.stop-requested' && event.data.reason === 'expired';
}
