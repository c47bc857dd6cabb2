import type { RecordedEvent } from '#events/events.ts';
import { isPublic, toPublicEvent } from '#events/public-event.ts';
import { streamFilter } from '#events/subjects.ts';
import { hasLabels } from '#src/kernel/domain/session/has-labels.ts';

/**
 * The body of a delivery. It is made from the event each time: what was sent can be shown later
 * without having been stored.
 */
export function bodyOf(event: RecordedEvent): string {
  const { type, time: timestamp } = event;
  return JSON.stringify({ type, timestamp, data: toPublicEvent(event) });
}

/** Whether the webhook gets the event. */
export function isWanted(
  { types, labels }: { types: readonly string[]; labels: Readonly<Record<string, string>> },
  event: RecordedEvent,
): boolean {
  if (!isPublic(event.type)) return false;
  if (types.length > 0 && !types.includes(event.type)) return false;
  const wanted = Object.entries(labels);
  return wanted.length === 0 || hasLabels(event, wanted);
}

/** The lane of an event: a failed delivery holds up the later ones of its lane alone. */
export function laneOf({ aggregate }: RecordedEvent): string {
  return streamFilter(aggregate).split('.').slice(2, -1).join('.');
}
