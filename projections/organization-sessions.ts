import { isOf } from '#events/events.ts';
import type { SessionState, SessionStatus } from '#events/session.ts';
import { filters } from '#events/subjects.ts';
import type { Projection } from './projection.ts';
import { sessionKey, sessionOf } from './session-view.ts';

/**
 * A row of `GET /api/sessions`, in the API's own shape and key order: a page is sent as the stored
 * texts joined, unparsed.
 */
export type SessionRow = {
  id: string;
  session_name: string;
  status: SessionStatus;
  created_at: string;
  expires_at: string;
  /** null until somebody has. */
  last_accessed_at: string | null;
};

/**
 * The rows of an organization's sessions, and the lists they are paged by: newest creation first.
 */
export const organizationSessions: Projection<SessionRow> = {
  name: 'organization-sessions',
  version: 2,
  subjects: filters.sessions,
  readsView: false,
  key(event) {
    return isOf('session', event)
      ? sessionKey(event.aggregate.organizationId, event.aggregate.id)
      : null;
  },
  aggregateOf: sessionOf,
  evolve(view, event) {
    return isOf('session', event) ? rowOf(event.state) : view;
  },
  lists(view, event) {
    const names = isOf('session', event) ? listsOf(event.state) : [];
    return { names, order: Date.parse(view.created_at) };
  },
};

function rowOf(state: SessionState): SessionRow {
  return {
    id: state.id,
    session_name: state.name,
    status: state.status,
    created_at: state.createdAt,
    expires_at: state.expiresAt,
    last_accessed_at: state.lastAccessedAt,
  };
}

function listsOf(state: SessionState): string[] {
  const { organizationId, status } = state;
  const names = [allSessions(organizationId), sessionsInStatus(organizationId, status)];
  for (const [label, value] of Object.entries(state.labels)) {
    names.push(sessionsWithLabel(organizationId, label, value));
    names.push(sessionsWithLabel(organizationId, label, value, status));
  }
  if (status === 'stopped' || status === 'failed') return names;
  names.push(openSessions(organizationId));
  const isWaiting = (status === 'creating' || status === 'queued') && state.assignment === null;
  if (isWaiting) names.push(waitingSessions);
  return names;
}

/** All sessions of an organization, ended ones too. */
export function allSessions(organizationId: string): string {
  return `${organizationId}/all`;
}

export function sessionsInStatus(organizationId: string, status: SessionStatus): string {
  return `${organizationId}/status/${status}`;
}

/**
 * Those with a label, or those of them in one status, which is a list of its own: what stands in
 * two lists can only be found by walking one. `=` and `%` in the label's name are escaped, so that
 * no other label makes the same list.
 */
export function sessionsWithLabel(
  organizationId: string,
  label: string,
  value: string,
  status?: SessionStatus,
): string {
  const name = label.replaceAll('%', '%25').replaceAll('=', '%3D');
  const among = status === undefined ? organizationId : sessionsInStatus(organizationId, status);
  return `${among}/label/${name}=${value}`;
}

/**
 * The lists in all of which those stand that have the status (null: any) and all of the labels; one
 * list where at most one label is asked for.
 */
export function sessionLists(
  organizationId: string,
  status: SessionStatus | null,
  labels: readonly (readonly [name: string, value: string])[],
): string[] {
  if (labels.length > 0)
    return labels.map(([name, value]) =>
      sessionsWithLabel(organizationId, name, value, status ?? undefined),
    );
  return [status === null ? allSessions(organizationId) : sessionsInStatus(organizationId, status)];
}

/** Those of an organization that have not ended: they hold its slots. */
export function openSessions(organizationId: string): string {
  return `${organizationId}/open`;
}

/**
 * Creating or queued sessions of all organizations that no server has taken, the longest waiting at
 * the low end.
 */
export const waitingSessions = 'waiting';
