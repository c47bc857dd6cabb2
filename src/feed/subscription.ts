import { STATE_UNKNOWN } from '#events/codec.ts';
import { isOf, type RecordedEvent } from '#events/events.ts';
import { filterOf, filtersFor } from '#events/subjects.ts';

/** What a client wants to hear of its organization. */
export type Asked = {
  organizationId: string;
  /** One session's events alone; null: all of the organization's. */
  sessionId: string | null;
  /** Types of events; none: all. */
  types: readonly string[];
  /** Sessions that have all of these labels; where there are any, nothing but sessions' events. */
  labels: readonly (readonly [name: string, value: string])[];
  /** ISO 8601 UTC, milliseconds: what was decided before is left out. */
  since: string | null;
};

export function isWanted(asked: Asked, event: RecordedEvent): boolean {
  const { sessionId, types, labels, since } = asked;
  if (sessionId !== null && !isOfSession(event, sessionId)) return false;
  if (types.length > 0 && !types.includes(event.type)) return false;
  if (since !== null && event.time < since) return false;
  return labels.length === 0 || hasLabels(event, labels);
}

/** Whether nothing can come after it that is asked for. */
export function isLast({ sessionId }: Asked, event: RecordedEvent): boolean {
  if (sessionId === null || !isOfSession(event, sessionId)) return false;
  return event.type === 'session.stopped' || event.type === 'session.failed';
}

/**
 * The log's filters that let through all that is asked for. A session's are not narrowed to types:
 * its stream ends with its last event, whether that is asked for or not.
 */
export function subjectsOf({ organizationId, sessionId, types }: Asked): string[] {
  if (sessionId !== null) return [filterOf({ kind: 'session', organizationId, id: sessionId })];
  if (types.length === 0) return filtersFor(organizationId, null);
  return types.flatMap((type) => filtersFor(organizationId, type));
}

function isOfSession(event: RecordedEvent, sessionId: string): boolean {
  return isOf('session', event) && event.aggregate.id === sessionId;
}

function hasLabels(event: RecordedEvent, labels: Asked['labels']): boolean {
  if (!isOf('session', event)) return false;
  // Which labels it has cannot be told; rather once too often than not at all.
  if ((event.state as unknown) === STATE_UNKNOWN) return true;
  const { labels: own } = event.state;
  return labels.every(([name, value]) => Object.hasOwn(own, name) && own[name] === value);
}
