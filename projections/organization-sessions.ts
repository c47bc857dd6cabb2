import { isOf } from '#events/events.ts';
import type { SessionState, SessionStatus } from '#events/session.ts';
import { filters } from '#events/subjects.ts';
import type { Projection } from './projection.ts';
import { sessionKey, sessionOf } from './session-view.ts';

/**
 * A row of `GET /api/sessions` in the API's shape and key order: the API joins the stored texts of
 * a page and sends them unparsed.
 */
export type SessionRow = {
  id: string;
  session_name: string;
  status: SessionStatus;
  created_at: string;
  expires_at: string;
  /** null: never accessed. */
  last_accessed_at: string | null;
};

/**
 * One row per session, in the lists that the API pages through: newest creation first.
 */
export const organizationSessions: Projection<SessionRow> = {
  name: 'organization-sessions',
  version: 3,
  subjects: filters.sessions,
  key(event) {
    return isOf('session', event)
      ? sessionKey(event.aggregate.organizationId, event.aggregate.id)
      : null;
  },
  aggregateOf: sessionOf,
  view(event) {
    return isOf('session', event) ? rowOf(event.state) : null;
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
  const names = [
    allSessions(organizationId),
    sessionsInStatus(organizationId, status),
    sessionsOfUser(organizationId, state.userId),
  ];
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

/** All sessions of an organization, including ended ones. */
export function allSessions(organizationId: string): string {
  return `${organizationId}/all`;
}

export function sessionsInStatus(organizationId: string, status: SessionStatus): string {
  return `${organizationId}/status/${status}`;
}

/** Sessions of a user, in any status: a user in one status is an intersection. */
export function sessionsOfUser(organizationId: string, userId: string): string {
  return `${organizationId}/user/${userId}`;
}

/**
 * Sessions with a label, optionally in one status. Label and status together have their own list,
 * because the intersection of two lists costs a walk through one of them. `=` and `%` in the
 * label's name are escaped, so that different labels never share a list.
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
 * The lists whose intersection is the sessions with the status (null: any) and all of the labels,
 * of the user; one list if there is at most one label and no user, or the user alone.
 */
export function sessionLists(
  organizationId: string,
  status: SessionStatus | null,
  labels: readonly (readonly [name: string, value: string])[],
  userId?: string,
): string[] {
  const lists = labels.map(([name, value]) =>
    sessionsWithLabel(organizationId, name, value, status ?? undefined),
  );
  if (labels.length === 0 && status !== null) lists.push(sessionsInStatus(organizationId, status));
  if (userId !== undefined) lists.push(sessionsOfUser(organizationId, userId));
  return lists.length === 0 ? [allSessions(organizationId)] : lists;
}

/** An organization's sessions that have not ended: they occupy its slots. */
export function openSessions(organizationId: string): string {
  return `${organizationId}/open`;
}

/**
 * Creating or queued sessions, of all organizations, that no server has accepted; the longest
 * waiting one is at the low end.
 */
export const waitingSessions = 'waiting';
