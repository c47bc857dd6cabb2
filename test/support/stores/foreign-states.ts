import type { RecordedEvent, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { OpenWorkQueue, WorkQueue } from '#src/kernel/messaging/work-queue.ts';

/** The event as a process of another state version reads it. */
function foreign<Event extends RecordedEvent | null>(event: Event): Event {
  return event === null ? event : { ...event, state: null };
}

/** The store as a process reads it while all events are written with another state version. */
export function withForeignStates(eventStore: EventStore): EventStore {
  return {
    ...eventStore,
    async *subscribe(options) {
      for await (const batch of eventStore.subscribe(options)) yield batch.map(foreign);
    },
    async readLast<Kind extends AggregateKind>(
      aggregate: RefOf<Kind>,
      options?: { fromLeader?: boolean },
    ) {
      const last = await eventStore.readLast<Kind>(aggregate, options);
      return foreign(last as RecordedEvent | null) as typeof last;
    },
    async *history<Kind extends AggregateKind>(aggregate: RefOf<Kind>) {
      for await (const event of eventStore.history<Kind>(aggregate))
        yield foreign(event as RecordedEvent) as typeof event;
    },
  };
}

/** The work queues as such a process reads them. */
export function withForeignItems(open: OpenWorkQueue): OpenWorkQueue {
  return async (name, subjects) => foreignQueue(await open(name, subjects));
}

function foreignQueue(queue: WorkQueue<RecordedEvent>): WorkQueue<RecordedEvent> {
  return {
    ...queue,
    async next(waitMs, signal) {
      const delivery = await queue.next(waitMs, signal);
      return delivery === null ? null : { ...delivery, item: foreign(delivery.item) };
    },
  };
}
