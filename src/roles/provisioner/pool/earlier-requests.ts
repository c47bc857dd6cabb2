import type { EventWithState } from '#events/events.ts';
import { isOf } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { isAwaitingServer } from '#src/kernel/domain/session/session.ts';

/** Session events that are read, some seconds; with more of them nothing is known. */
const EVENTS_MAX = 200_000;

/**
 * The requests that waited for a server at the position, by the session events since the time (ms
 * since the epoch). A request from before that has failed by its queue time-out. Events that cannot
 * be read are left out: their sessions are served by their own items.
 * @returns empty if there are too many events
 * @throws Unavailable
 */
export async function requestsWaitingAt(
  eventStore: EventStore,
  { position, since, signal }: { position: number; since: number; signal: AbortSignal },
): Promise<EventWithState<'session'>[]> {
  const waiting = new Map<string, EventWithState<'session'>>();
  const after = await eventStore.sequenceBefore(new Date(since).toISOString());
  const range = { subjects: filters.sessions, after, upTo: position, signal };
  let count = 0;
  for await (const batch of eventStore.read({ ...range, onUnreadable: () => undefined })) {
    count += batch.length;
    if (count > EVENTS_MAX || signal.aborted) return [];
    for (const event of batch) {
      if (!isOf('session', event)) continue;
      const { id } = event.aggregate;
      if (event.state === null || !isAwaitingServer(event.state)) waiting.delete(id);
      else if (event.type === 'session.requested' || event.type === 'session.requeued')
        waiting.set(id, event as EventWithState<'session'>);
    }
  }
  return [...waiting.values()];
}
