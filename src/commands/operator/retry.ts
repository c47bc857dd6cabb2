import { allProjections } from '#projections/all-projections.ts';
import { retryDeadLetter } from '#projections/maintenance/retry-dead-letter.ts';
import { projectionId } from '#projections/projection.ts';
import type { StoreMaintenance } from '#projections/store/maintenance.ts';
import type { Views } from '#projections/store/views.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type {
  DeadLetter,
  DeadLetterStore,
  Redelivered,
} from '#src/kernel/messaging/dead-letters.ts';

export type RetryParts = {
  eventStore: EventStore;
  deadLetters: DeadLetterStore;
  /** Asked for where a projection has to fold the event again. */
  openViews: () => Promise<Views & StoreMaintenance>;
  signal: AbortSignal;
};

/** Has what could not handle a dead letter's event try again. @throws Unavailable */
export async function retryEvent(parts: RetryParts, event: DeadLetter): Promise<Redelivered> {
  const { eventStore, deadLetters, openViews, signal } = parts;
  if (event.kind === 'work_queue') return deadLetters.redeliver(event);
  const projection = allProjections.find((one) => projectionId(one) === event.by);
  if (projection === undefined) {
    // The projection that could not handle the event is of an earlier version and no longer exists.
    await deadLetters.resolve(event);
    return { outcome: 'mended' };
  }
  const views = await openViews();
  const retry = { projection, event, eventStore, views, deadLetters, signal };
  const retried = await retryDeadLetter(retry);
  if (retried.outcome === 'fails') await deadLetters.failedAgain(event);
  return retried;
}
