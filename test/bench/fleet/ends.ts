import { isOf } from '#events/events.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';

/** The longest that a stopped session may take to end. */
const END_WITHIN_MS = 120_000;

/** The ends of sessions, as the event store tells them. */
export type Ends = {
  /** Resolves once the session has ended; to be called before its stop. */
  of(id: string): Promise<void>;
  failed(): number;
} & AsyncDisposable;

export async function followEnds(connection: JetStreamConnection): Promise<Ends> {
  const eventStore = createJetStreamEventStore(connection);
  const after = await eventStore.lastSequence();
  const stopped = new AbortController();
  const waiting = new Map<string, () => void>();
  let failed = 0;
  const follow = async () => {
    const batches = eventStore.subscribe({
      subjects: ['stopped', 'failed'].map((event) => `evt.*.session.*.${event}`),
      after,
      signal: stopped.signal,
      onUnreadable: ({ reason }) => {
        throw new Error(reason);
      },
    });
    for await (const batch of batches)
      for (const event of batch.filter((one) => isOf('session', one))) {
        if (event.type === 'session.failed') failed += 1;
        waiting.get(event.aggregate.id)?.();
      }
  };
  const following = follow();
  return {
    of: (id) =>
      within(END_WITHIN_MS, new Promise<void>((end) => waiting.set(id, end)), () => {
        throw new Error(`${id} has not ended within ${END_WITHIN_MS} ms`);
      }),
    failed: () => failed,
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await following;
    },
  };
}
