import type { RecordedEvent } from '#events/events.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { readRange } from '#src/event-store/read-range.ts';

/**
 * All events there are of the subjects, oldest first, from behind `after`.
 * @param warn is told of each event that cannot be read; it is left out
 * @throws Unavailable
 */
export async function* readEvents(
  log: EventLog,
  subjects: readonly string[],
  warn: (text: string) => void,
  range: { after?: number; upTo?: number } = {},
): AsyncGenerator<RecordedEvent, void, void> {
  const onMalformed = (poison: Poison) => warn(describePoison(poison));
  for await (const batch of readRange(log, { upTo: Infinity, ...range, subjects, onMalformed }))
    yield* batch;
}

type Poison = { sequence: number; subject: string; reason: string };

/** A schema's whole complaint runs to pages. */
const REASON_MAX = 240;

/** What a person is told of an event that cannot be read. */
export function describePoison({ sequence, subject, reason }: Poison): string {
  return `event ${sequence} (${subject}) cannot be read: ${reason.slice(0, REASON_MAX)}`;
}
