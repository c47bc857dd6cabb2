import { isOf, type RecordedEvent } from '#events/events.ts';
import { isPublic } from '#events/public-event.ts';
import { streamFilter, filtersFor } from '#events/subjects.ts';
import { hasLabels } from '#src/kernel/domain/session/has-labels.ts';

/** Which events of its organization a client subscribes to. */
export type Subscription = {
  organizationId: string;
  /** One session's events only; null: all of the organization's. */
  sessionId: string | null;
  /** Event types; empty: all. */
  types: readonly string[];
  /** Only events of sessions that have all of these labels; empty: events of any aggregate. */
  labels: readonly (readonly [name: string, value: string])[];
  /** ISO 8601 UTC, milliseconds: events decided earlier are left out. */
  since: string | null;
};

/** Whether the event matches the subscription. */
export function isMatch(subscription: Subscription, event: RecordedEvent): boolean {
  const { sessionId, types, labels, since } = subscription;
  if (!isPublic(event.type)) return false;
  if (sessionId !== null && !isOfSession(event, sessionId)) return false;
  if (types.length > 0 && !types.includes(event.type)) return false;
  if (since !== null && event.time < since) return false;
  return labels.length === 0 || hasLabels(event, labels);
}

/** Whether no later event can match: a session's stream ends with the session. */
export function isFinalEvent({ sessionId }: Subscription, event: RecordedEvent): boolean {
  if (sessionId === null || !isOfSession(event, sessionId)) return false;
  return event.type === 'session.stopped' || event.type === 'session.failed';
}

/**
 * Subject filters of the event store that cover the subscription. A session's filter is not
 * narrowed by type: its stream ends with its final event, even if that type is not subscribed.
 */
export function subjectsOf({ organizationId, sessionId, types }: Subscription): string[] {
  if (sessionId !== null) return [streamFilter({ kind: 'session', organizationId, id: sessionId })];
  if (types.length === 0) return filtersFor(organizationId, null);
  return types.flatMap((type) => filtersFor(organizationId, type));
}

function isOfSession(event: RecordedEvent, sessionId: string): boolean {
  return isOf('session', event) && event.aggregate.id === sessionId;
}
