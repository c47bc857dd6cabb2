import { isOf, type RecordedEvent } from '#events/events.ts';

/** Whether the event is of a session with all of these labels; an unknown state passes. */
export function hasLabels(
  event: RecordedEvent,
  labels: readonly (readonly [name: string, value: string])[],
): boolean {
  if (!isOf('session', event)) return false;
  // The labels are unknown: an event too many is better than a missing one.
  if (event.state === null) return true;
  const { labels: own } = event.state;
  return labels.every(([name, value]) => Object.hasOwn(own, name) && own[name] === value);
}
