import type { CloudEvent } from '#events/cloud-event.ts';
import type { SessionState, SessionStatus } from '#events/session.ts';

/** A session in the list. What the list of the API does not tell is null until it is known. */
export type Row = {
  id: string;
  name: string;
  status: SessionStatus;
  createdAt: string;
  expiresAt: string;
  labels: Readonly<Record<string, string>> | null;
  userId: string | null;
  endedReason: string | null;
};

/** A row of GET /api/sessions. */
export type ListedSession = {
  id: string;
  session_name: string;
  status: SessionStatus;
  created_at: string;
  expires_at: string;
};

export type SessionDetails = ListedSession & {
  labels: Record<string, string>;
  user_id: string;
  ended_reason: string | null;
};

export function rowOfListed(listed: ListedSession, known: Row | undefined): Row {
  return {
    id: listed.id,
    name: listed.session_name,
    status: listed.status,
    createdAt: listed.created_at,
    expiresAt: listed.expires_at,
    labels: known?.labels ?? null,
    userId: known?.userId ?? null,
    endedReason: known?.endedReason ?? null,
  };
}

export function rowOfDetails(session: SessionDetails): Row {
  return {
    ...rowOfListed(session, undefined),
    labels: session.labels,
    userId: session.user_id,
    endedReason: session.ended_reason,
  };
}

/** The row after an event; null for an event that is not of a session, or that has no state. */
export function rowOfEvent({ type, state }: CloudEvent): Row | null {
  if (!type.startsWith('session.') || state === null) return null;
  const session = state as SessionState;
  return {
    id: session.id,
    name: session.name,
    status: session.status,
    createdAt: session.createdAt,
    expiresAt: session.expiresAt,
    labels: session.labels,
    userId: session.userId,
    endedReason: session.endedReason,
  };
}

/** Newest first; sessions of the same millisecond by their ids. */
export function byCreation(left: Row, right: Row): number {
  if (left.createdAt !== right.createdAt) return left.createdAt < right.createdAt ? 1 : -1;
  return left.id < right.id ? 1 : -1;
}

export function isOver({ status }: Row): boolean {
  return status === 'stopped' || status === 'failed';
}

/** `2 h 5 min`, from the two largest units. */
export function formatTimeLeft(ms: number): string {
  if (ms <= 0) return 'now';
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
