import { isOf, type RecordedEvent } from '#events/events.ts';
import { sessionKey } from '#projections/session-view.ts';

/** A session that no server has accepted yet. */
export type Waiting = {
  organizationId: string;
  id: string;
  /** Of its request; ms since the epoch. */
  since: number;
  /** The server that gave it back last, and why; null: none did. */
  returned: { serverId: string; detail: string } | null;
};

/** Folds who waits, from the events of `filters.waiting`. */
export function createWaitingLine() {
  const line = new Map<string, Waiting>();
  /** Times of requests whose session has been accepted: it may be given back. */
  const accepted = new Map<string, number>();

  function take(event: RecordedEvent): void {
    if (!isOf('session', event)) return;
    const { organizationId, id } = event.aggregate;
    const key = sessionKey(organizationId, id);
    const time = Date.parse(event.time);
    switch (event.type) {
      case 'session.requested':
        line.set(key, { organizationId, id, since: time, returned: null });
        break;
      case 'session.requeued': {
        const { serverId, detail } = event.data;
        const since = accepted.get(key) ?? line.get(key)?.since ?? time;
        line.set(key, { organizationId, id, since, returned: { serverId, detail } });
        break;
      }
      case 'session.assigned': {
        const since = line.get(key)?.since;
        if (since !== undefined) accepted.set(key, since);
        line.delete(key);
        break;
      }
      case 'session.activated':
      case 'session.stop-requested':
      case 'session.stopped':
      case 'session.failed':
        accepted.delete(key);
        line.delete(key);
        break;
      default:
    }
  }
  return {
    take,
    count(isAsked: (key: string) => boolean): number {
      let count = 0;
      for (const key of line.keys()) if (isAsked(key)) count += 1;
      return count;
    },
    /** The longest waiting one first, like the read model's list. */
    inOrder(): Waiting[] {
      return [...line]
        .toSorted(
          ([key, one], [other, second]) =>
            one.since - second.since || Buffer.compare(Buffer.from(key), Buffer.from(other)),
        )
        .map(([, waiting]) => waiting);
    },
  };
}
