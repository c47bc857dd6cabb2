import { addTraffic } from '../egress/traffic.ts';
import { endedHandoff, handoffAfter } from './handoff.ts';
import { recordingAfter } from './recording.ts';
import { profileAfter } from './profile.ts';
import { sharesAfter } from './share.ts';
import {
  keyedExtensionsMax,
  type SessionEvent,
  type SessionState,
  type SessionStatus,
} from '#events/session.ts';

/** The ids of a session in the event store. */
export type SessionIdentity = { organizationId: string; id: string };

/**
 * The session after the event. Every order of events is accepted, since `decide` alone enforces the
 * transitions.
 * @throws RangeError for an event before `requested`, which no valid history contains.
 */
export function evolve(
  session: SessionState | null,
  event: SessionEvent,
  identity: SessionIdentity,
): SessionState {
  if (event.type === 'session.requested') return requested(event.data, identity);
  if (session === null) throw incomplete(event.type);
  switch (event.type) {
    case 'session.queued':
      return { ...session, ...unstarted, status: 'queued', assignment: null };
    case 'session.assigned':
      return { ...session, ...unstarted, status: 'creating', assignment: event.data };
    case 'session.requeued':
      return {
        ...session,
        ...unstarted,
        status: 'queued',
        assignment: null,
        triedServers: [...(session.triedServers ?? []), event.data.serverId],
      };
    case 'session.activated':
      return { ...session, ...unended, ...event.data, status: 'active', assignment: null };
    case 'session.extended':
      return {
        ...session,
        expiresAt: event.data.expiresAt,
        creditsReserved: session.creditsReserved + event.data.creditsReserved,
        ...keyedBy(session, event.data),
      };
    case 'session.accessed':
      return { ...session, lastAccessedAt: event.data.at };
    case 'session.access-rotated':
      return { ...session, accessEpoch: event.data.epoch };
    case 'session.updated':
      return { ...session, ...event.data };
    case 'session.expiry-warning':
      return { ...session, expiryWarnedFor: event.data.expiresAt };
    case 'session.stop-requested':
      return {
        ...session,
        status: 'stopping',
        assignment: null,
        stopRequestedAt: event.data.at,
        endedReason: event.data.reason,
        endedAt: null,
        creditsUsed: null,
        ...endedHandoff(session, event.data.at),
      };
    case 'session.stopped':
      return {
        ...session,
        ...endOf(event.data),
        status: 'stopped',
        endedReason: event.data.reason,
      };
    case 'session.failed':
      return {
        ...session,
        ...endOf(event.data),
        status: 'failed',
        endedReason: event.data.reason,
        ...endedHandoff(session, event.data.endedAt),
      };
    case 'session.carried-forward':
      return session;
    default:
      return steered(session, event);
  }
}

/** The session after an event of its traffic, hand-off, shares, recording, files or profile. */
function steered(session: SessionState, event: SteeringEvent): SessionState {
  switch (event.type) {
    case 'session.share-created':
    case 'session.share-used':
    case 'session.share-revoked':
      return { ...session, shares: sharesAfter(session.shares ?? [], event) };
    case 'session.egress-recorded':
      return { ...session, egressTraffic: addTraffic(session.egressTraffic, event.data) };
    case 'session.recording-stored':
      return { ...session, recording: recordingAfter(session.recording, event.data) };
    case 'session.file-added':
    case 'session.file-removed':
    case 'session.file-refused':
      // They are folded apart, by files.ts: there may be a thousand.
      return session;
    case 'session.profile-save-requested':
    case 'session.profile-saved':
    case 'session.profile-not-saved':
      return { ...session, ...profileAfter(session.profile, event) };
    default:
      return { ...session, ...handoffAfter(session, event) };
  }
}
type SteeringEvent = Extract<
  SessionEvent,
  { type: `session.${'egress' | 'file' | 'handoff' | 'profile' | 'recording' | 'share'}-${string}` }
>;

function incomplete(type: string): RangeError {
  return new RangeError(`${type} before session.requested: the history is incomplete`);
}

const unended = { endedReason: null, endedAt: null, creditsUsed: null };
const unstarted = { ...unended, startedAt: null, workload: null };

function requested(
  data: Extract<SessionEvent, { type: 'session.requested' }>['data'],
  identity: SessionIdentity,
): SessionState {
  return {
    status: 'creating',
    id: identity.id,
    organizationId: identity.organizationId,
    ...data,
    lastAccessedAt: null,
    stopRequestedAt: null,
    ...unstarted,
    assignment: null,
  };
}

/**
 * The remembered extensions after this one: the last ones that came with a key, at most
 * `keyedExtensionsMax`.
 */
function keyedBy(
  { keyedExtensions = [], status }: SessionState,
  { repeatable, expiresAt }: Extract<SessionEvent, { type: 'session.extended' }>['data'],
) {
  if (repeatable === undefined) return {};
  const all = [...keyedExtensions, { repeatable, status, expiresAt }];
  return { keyedExtensions: all.slice(-keyedExtensionsMax) };
}

/**
 * The result of an earlier extension with the key; null if there was none, or it was too long ago.
 */
export function keyedExtension(session: SessionState, key: string | undefined) {
  return session.keyedExtensions?.find(({ repeatable }) => repeatable.key === key) ?? null;
}

function endOf(data: { endedAt: string; creditsUsed: number }) {
  return { endedAt: data.endedAt, creditsUsed: data.creditsUsed, assignment: null };
}

type Transition = { from: readonly (SessionStatus | null)[]; to: SessionStatus | 'same' };

/**
 * Which events each status allows. `lifecycle.md` has the same table, and a test holds the two
 * equal.
 */
export const transitions: Record<SessionEvent['type'], Transition> = {
  'session.requested': { from: [null], to: 'creating' },
  'session.queued': { from: ['creating'], to: 'queued' },
  'session.assigned': { from: ['creating', 'queued'], to: 'creating' },
  'session.requeued': { from: ['creating'], to: 'queued' },
  'session.activated': { from: ['creating', 'queued'], to: 'active' },
  'session.extended': { from: ['creating', 'queued', 'active'], to: 'same' },
  'session.accessed': { from: ['active'], to: 'same' },
  'session.access-rotated': { from: ['creating', 'queued', 'active'], to: 'same' },
  'session.updated': { from: ['creating', 'queued', 'active'], to: 'same' },
  'session.handoff-requested': { from: ['active'], to: 'same' },
  'session.handoff-taken': { from: ['active'], to: 'same' },
  'session.handoff-completed': { from: ['active'], to: 'same' },
  'session.handoff-expired': { from: ['active'], to: 'same' },
  'session.share-created': { from: ['creating', 'queued', 'active'], to: 'same' },
  'session.share-used': { from: ['active'], to: 'same' },
  'session.share-revoked': { from: ['creating', 'queued', 'active'], to: 'same' },
  'session.egress-recorded': { from: ['active', 'stopping'], to: 'same' },
  'session.recording-stored': { from: ['active', 'stopping'], to: 'same' },
  'session.file-added': { from: ['active', 'stopping'], to: 'same' },
  'session.file-removed': { from: ['active'], to: 'same' },
  'session.file-refused': { from: ['active', 'stopping'], to: 'same' },
  'session.profile-save-requested': { from: ['active'], to: 'same' },
  'session.profile-saved': { from: ['active', 'stopping'], to: 'same' },
  'session.profile-not-saved': { from: ['active', 'stopping'], to: 'same' },
  'session.expiry-warning': { from: ['active'], to: 'same' },
  'session.stop-requested': { from: ['creating', 'queued', 'active'], to: 'stopping' },
  'session.stopped': { from: ['stopping'], to: 'stopped' },
  'session.failed': { from: ['creating', 'queued', 'active', 'stopping'], to: 'failed' },
  'session.carried-forward': { from: ['creating', 'queued', 'active', 'stopping'], to: 'same' },
};

/** Whether a session no longer waits for its browser: it is active, stopping or has ended. */
export function isSettled({ status }: Pick<SessionState, 'status'>): boolean {
  return status !== 'creating' && status !== 'queued';
}

/** Whether no server has accepted the session yet. */
export function isAwaitingServer(session: Pick<SessionState, 'status' | 'assignment'>): boolean {
  return !isSettled(session) && session.assignment === null;
}

/** stopped and failed: the session does not change any more. */
export function isFinal(status: SessionStatus): status is 'stopped' | 'failed' {
  return status === 'stopped' || status === 'failed';
}
