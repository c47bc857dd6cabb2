import type { RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import type { EventStore, UnreadableEvent } from '#src/kernel/event-store/event-store.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';

/** The one subscription of this process to the events of all organizations. */
export type Follower = AsyncDisposable & {
  /** Subscribes at the end of the event store, unless it has already. @throws Unavailable */
  started(): Promise<void>;
  /** Every event after this sequence is still to be delivered. */
  position(): number;
};

/**
 * Subscribes at the first `started()`. If the subscription fails, `lost` is called and the next
 * `started()` subscribes again.
 */
export function createFollower(
  eventStore: EventStore,
  logger: Logger,
  on: {
    events: (events: readonly RecordedEvent[]) => void;
    /** All events before it were delivered. */
    unknown: (poison: UnreadableEvent) => void;
    lost: () => void;
  },
): Follower {
  const stop = new AbortController();
  let position = 0;
  let starting: Promise<void> | null = null;
  let running: Promise<void> = Promise.resolve();

  async function start(): Promise<void> {
    position = await eventStore.lastSequence();
    running = run().catch((error: unknown) => {
      logger.error({ err: error }, 'event feed lost its subscription to the event store');
      starting = null;
      on.lost();
    });
  }
  async function run(): Promise<void> {
    const batches = eventStore.subscribe({
      subjects: filters.tenants,
      after: position,
      signal: stop.signal,
      onUnreadable(poison) {
        position = poison.sequence;
        if (poison.kind === 'unknown') on.unknown(poison);
        else logger.error(poison, 'event feed: malformed event skipped');
      },
    });
    for await (const batch of batches) {
      position = batch.at(-1)?.sequence ?? position;
      on.events(batch);
    }
  }
  return {
    started() {
      starting ??= start().catch((error: unknown) => {
        starting = null;
        throw error;
      });
      return starting;
    },
    position: () => position,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}
