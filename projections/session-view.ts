import { isOf, type RefOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { filters } from '#events/subjects.ts';
import type { Projection } from './projection.ts';

/** A session as it stands: the state that its last event carries. */
export const sessionView: Projection<SessionState> = {
  name: 'session-view',
  version: 1,
  subjects: filters.sessions,
  readsView: false,
  key(event) {
    return isOf('session', event)
      ? sessionKey(event.aggregate.organizationId, event.aggregate.id)
      : null;
  },
  aggregateOf: sessionOf,
  evolve(view, event) {
    return isOf('session', event) ? event.state : view;
  },
  /** Oldest at the low end. */
  lists(view) {
    const serverId = view.workload?.serverId ?? view.assignment?.serverId;
    const isOpen = view.status !== 'stopped' && view.status !== 'failed';
    const names = isOpen && serverId !== undefined ? [sessionsOnServer(serverId)] : [];
    return { names, order: Date.parse(view.createdAt) };
  },
};

/** Sessions that a server launches a browser for, or runs, and that have not ended. */
export function sessionsOnServer(serverId: string): string {
  return `server/${serverId}`;
}

/** The organization is part of the key: a session of another one simply is not there. */
export function sessionKey(organizationId: string, sessionId: string): string {
  return `${organizationId}/${sessionId}`;
}

/** The session of a key. */
export function sessionOf(key: string): RefOf<'session'> {
  const [organizationId = '', id = ''] = key.split('/');
  return { kind: 'session', organizationId, id };
}
