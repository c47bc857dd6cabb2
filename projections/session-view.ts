import { isOf, type RefOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { filters } from '#events/subjects.ts';
import type { Projection } from './projection.ts';

/** The current state of each session: the state in its last event. */
export const sessionView: Projection<SessionState> = {
  name: 'session-view',
  version: 1,
  subjects: filters.sessions,
  key(event) {
    return isOf('session', event)
      ? sessionKey(event.aggregate.organizationId, event.aggregate.id)
      : null;
  },
  aggregateOf: sessionOf,
  view(event) {
    return isOf('session', event) ? event.state : null;
  },
  /** Ordered by creation, the oldest session at the low end. */
  lists(view) {
    const serverId = view.workload?.serverId ?? view.assignment?.serverId;
    const isOpen = view.status !== 'stopped' && view.status !== 'failed';
    const names = isOpen && serverId !== undefined ? [sessionsOnServer(serverId)] : [];
    return { names, order: Date.parse(view.createdAt) };
  },
};

/** Sessions that have not ended and whose browser a server is launching or running. */
export function sessionsOnServer(serverId: string): string {
  return `server/${serverId}`;
}

/** The organization is part of the key: a lookup never finds another organization's session. */
export function sessionKey(organizationId: string, sessionId: string): string {
  return `${organizationId}/${sessionId}`;
}

/** The inverse of `sessionKey`. */
export function sessionOf(key: string): RefOf<'session'> {
  const [organizationId = '', id = ''] = key.split('/');
  return { kind: 'session', organizationId, id };
}
