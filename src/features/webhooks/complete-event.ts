import { MalformedEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { withState } from '#src/kernel/event-store/load-state.ts';

/** The event with its aggregate's state, as organizations get it. */
export async function complete(
  eventStore: EventStore,
  event: RecordedEvent,
): Promise<RecordedEvent> {
  try {
    return await withState(eventStore, event);
  } catch (error) {
    // A malformed history: the event is sent without a state.
    if (error instanceof MalformedEvent) return event;
    throw error;
  }
}
