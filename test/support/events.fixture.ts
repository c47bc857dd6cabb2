import { randomUUID } from 'node:crypto';
import type { Unsequenced } from '#events/codec.ts';
import type { Cause } from '#events/envelope.ts';
import type { RefOf } from '#events/events.ts';
import type { LedgerState } from '#events/ledger.ts';
import type { SessionState } from '#events/session.ts';
import type { Change } from '#src/event-store/event-store.ts';

const CREATED_AT = '2026-01-01T00:00:00.000Z';
const EXPIRES_AT = '2026-01-01T02:00:00.000Z';

/** An id that no other test has. */
export function freshId(prefix: string): string {
  return `${prefix}-${randomUUID()}`;
}

/** A session of its own organization, unless one is named. */
export function aSession(organizationId = freshId('org')): RefOf<'session'> {
  return { kind: 'session', organizationId, id: freshId('session') };
}

export function ledgerOf({ organizationId }: { organizationId: string }): RefOf<'ledger'> {
  return { kind: 'ledger', organizationId };
}

/**
 * A change of one aggregate: what was decided at the sequence. The aggregate is that of the events.
 */
export function change(
  expectedSequence: number,
  ...events: [Unsequenced, ...Unsequenced[]]
): Change {
  return { aggregate: events[0].aggregate, expectedSequence, events };
}

export function aCause(commandId = freshId('command')): Cause {
  return {
    actor: { kind: 'user', id: 'user-1' },
    commandId,
    correlationId: `correlation of ${commandId}`,
    causationId: null,
  };
}

const requestedData = {
  name: 'a session',
  description: '',
  userId: 'user-1',
  labels: { team: 'blue' },
  browser: { viewport: null, locale: null, timezone: null },
  idleTimeoutMs: null,
  createdAt: CREATED_AT,
  expiresAt: EXPIRES_AT,
  creditsReserved: 120,
  fingerprint: null,
};

/** The state of a session that was just requested. */
export function creatingState(session: RefOf<'session'>): SessionState {
  return {
    status: 'creating',
    id: session.id,
    organizationId: session.organizationId,
    ...requestedData,
    lastAccessedAt: null,
    stopRequestedAt: null,
    startedAt: null,
    workload: null,
    endedReason: null,
    endedAt: null,
    creditsUsed: null,
    assignment: null,
  };
}

/** `session.requested`, the first event of a session. */
export function requested(session: RefOf<'session'>, cause: Cause = aCause()): Unsequenced {
  return event(session, 'session.requested', requestedData, creatingState(session), cause);
}

/** `session.queued`, as it follows `requested`. */
export function queued(session: RefOf<'session'>, cause: Cause = aCause()): Unsequenced {
  const state = { ...creatingState(session), status: 'queued' };
  return event(session, 'session.queued', {}, state, cause);
}

/** `session.accessed` on a session that is still creating; told apart by its minute. */
export function accessed(
  session: RefOf<'session'>,
  minute = 0,
  cause: Cause = aCause(),
): Unsequenced {
  const at = `2026-01-01T00:${String(minute % 60).padStart(2, '0')}:00.000Z`;
  const state = { ...creatingState(session), lastAccessedAt: at };
  return event(session, 'session.accessed', { via: 'api', at }, state, cause);
}

/** `ledger.slot-reserved` for a session, on a ledger of one slot and `credits` granted. */
export function slotReserved(
  session: RefOf<'session'>,
  cause: Cause = aCause(),
  credits = 120,
): Unsequenced {
  const state: LedgerState = {
    slotsInUse: 1,
    sessionsEnded: 0,
    creditsGranted: credits,
    creditsAvailable: 0,
    creditsReserved: credits,
    creditsUsed: 0,
  };
  const data = { sessionId: session.id, credits };
  return event(ledgerOf(session), 'ledger.slot-reserved', data, state, cause);
}

function event(
  aggregate: Unsequenced['aggregate'],
  type: string,
  data: unknown,
  state: unknown,
  cause: Cause,
): Unsequenced {
  return { aggregate, id: freshId('event'), type, time: CREATED_AT, data, state, cause };
}
