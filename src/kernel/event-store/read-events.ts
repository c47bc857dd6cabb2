import type { RecordedEvent } from '#events/events.ts';
import type { EventStore } from './event-store.ts';

/**
 * The events of the subjects with sequences above `after`, up to `upTo`, oldest first.
 * @param warn called for each event that cannot be read; the event is left out
 * @throws Unavailable
 */
export async function* readEvents(
  eventStore: EventStore,
  subjects: readonly string[],
  warn: (text: string) => void,
  range: { after?: number; upTo?: number } = {},
): AsyncGenerator<RecordedEvent, void, void> {
  const onUnreadable = (poison: UnreadableEvent) => warn(describeUnreadable(poison));
  for await (const batch of eventStore.read({
    ...range,
    subjects,
    includesArchive: true,
    onUnreadable,
  }))
    yield* batch;
}

type UnreadableEvent = { sequence: number; subject: string; reason: string };

/** The full reason of a schema mismatch runs to pages. */
const REASON_MAX = 240;

/** The warning for an event that cannot be read. */
export function describeUnreadable({ sequence, subject, reason }: UnreadableEvent): string {
  return `event ${sequence} (${subject}) cannot be read: ${reason.slice(0, REASON_MAX)}`;
}
