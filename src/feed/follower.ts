import type { RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import type { Log } from '#src/telemetry/logger.ts';

/** This process's one follower of what organizations may hear. */
export type Follower = AsyncDisposable & {
  /** Begins at the log's end, unless it has begun. @throws Unavailable */
  started(): Promise<void>;
  /** Every later event is yet to be delivered. */
  position(): number;
};

/**
 * Follows once it is asked to. Should it ever end by itself, `onLost` is called and the next
 * `started` begins anew.
 */
export function createFollower(
  log: EventLog,
  logger: Log,
  on: { events: (events: readonly RecordedEvent[]) => void; lost: () => void },
): Follower {
  const stop = new AbortController();
  let position = 0;
  let starting: Promise<void> | null = null;
  let running: Promise<void> = Promise.resolve();

  async function start(): Promise<void> {
    position = await log.lastSequence();
    running = run().catch((error: unknown) => {
      logger.error({ err: error }, 'the event feed no longer follows the log');
      starting = null;
      on.lost();
    });
  }
  async function run(): Promise<void> {
    const batches = log.follow({
      subjects: filters.tenants,
      after: position,
      signal: stop.signal,
      onMalformed: (poison) => logger.error(poison, 'malformed event left out of the feed'),
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
