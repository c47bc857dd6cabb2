import { MalformedEvent } from '#events/codec.ts';
import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import type { EventStore, UnreadableEvent } from '#src/kernel/event-store/event-store.ts';
import { withState } from '#src/kernel/event-store/load-state.ts';
import { stopAtUnknown } from '#src/kernel/event-store/unreadable.ts';
import type { SenderDependencies } from './dependencies.ts';
import type { Workers } from './workers.ts';

/** The organizations of the event store, followed for their webhooks. */
export type Organizations = {
  /**
   * Follows them until the signal aborts; a second call goes on where the first one failed.
   * @param isCurrent called when all that is stored has been read, and after each later batch
   * @throws UnknownEvent at an event of a newer version; Unavailable
   */
  follow(signal: AbortSignal, isCurrent: () => void): Promise<void>;
  /** Whether every event could be read: without it webhooks may be missing. */
  areComplete(): boolean;
};

type Parts = Pick<SenderDependencies, 'log'> & { eventStore: EventStore; workers: Workers };

/**
 * The last event of each organization carries its webhooks. What comes before the end of the event
 * store at the start is history: webhooks that have another URL by now, or are removed.
 */
export function createOrganizations({ eventStore, workers, log }: Parts): Organizations {
  /** Sequence up to which the events have been read. */
  let position = 0;
  let areComplete = true;

  async function take(batch: readonly RecordedEvent[]): Promise<void> {
    for (const event of batch) {
      if (isOf('organization', event)) await takeOne(event);
      position = event.sequence;
    }
  }
  async function takeOne(event: RecordedOf<'organization'>): Promise<void> {
    const { organizationId } = event.aggregate;
    try {
      const { state } = await withState<'organization'>(eventStore, event);
      workers.observe(organizationId, state.webhooks ?? []);
    } catch (error) {
      if (!(error instanceof MalformedEvent)) throw error;
      // No process can read it: the others' webhooks are served all the same.
      areComplete = false;
      const { sequence } = event;
      log.error(
        { organizationId, sequence, err: error },
        'change of an organization’s webhooks cannot be read',
      );
    }
  }
  function onUnreadable(poison: UnreadableEvent): void {
    stopAtUnknown(poison);
    areComplete = false;
  }
  return {
    areComplete: () => areComplete,
    async follow(signal, isCurrent) {
      const selection = {
        subjects: filters.organizations,
        canSkip: () => true,
        onUnreadable,
        signal,
      };
      const end = await eventStore.lastSequence();
      if (position < end)
        for await (const batch of eventStore.read({ ...selection, after: position, upTo: end }))
          await take(batch);
      if (signal.aborted) return;
      position = Math.max(position, end);
      isCurrent();
      for await (const batch of eventStore.subscribe({ ...selection, after: position })) {
        await take(batch);
        isCurrent();
      }
    },
  };
}
