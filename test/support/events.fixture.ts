import { randomUUID } from 'node:crypto';
import type { PendingEvent } from '#events/codec.ts';
import type { EventMetadata } from '#events/envelope.ts';
import type { RefOf } from '#events/events.ts';
import type { LedgerState } from '#events/ledger.ts';
import type { SessionState } from '#events/session.ts';
import type { StreamAppend } from '#src/kernel/event-store/event-store.ts';

const CREATED_AT = '2026-01-01T00:00:00.000Z';
const EXPIRES_AT = '2026-01-01T02:00:00.000Z';

/** A unique id. */
export function freshId(prefix: string): string {
  return `${prefix}-${randomUUID()}`;
}

/** A session of its own organization, unless the caller names one. */
export function aSession(organizationId = freshId('org')): RefOf<'session'> {
  return { kind: 'session', organizationId, id: freshId('session') };
}

export function ledgerOf({ organizationId }: { organizationId: string }): RefOf<'ledger'> {
  return { kind: 'ledger', organizationId };
}

/**
 * An append to one aggregate: the events that were decided at the sequence. The aggregate is that
 * of the events.
 */
export function change(
  expectedSequence: number,
  ...events: [PendingEvent, ...PendingEvent[]]
): StreamAppend {
  return { aggregate: events[0].aggregate, expectedSequence, events };
}

export function aCause(commandId = freshId('command')): EventMetadata {
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
export function requested(
  session: RefOf<'session'>,
  metadata: EventMetadata = aCause(),
): PendingEvent {
  return event(session, 'session.requested', requestedData, creatingState(session), metadata);
}

/** `session.queued`, as it follows `requested`. */
export function queued(
  session: RefOf<'session'>,
  metadata: EventMetadata = aCause(),
): PendingEvent {
  const state = { ...creatingState(session), status: 'queued' };
  return event(session, 'session.queued', {}, state, metadata);
}

/** `session.accessed` on a session that is still creating; distinguished by its minute. */
export function accessed(
  session: RefOf<'session'>,
  minute = 0,
  metadata: EventMetadata = aCause(),
): PendingEvent {
  const at = `2026-01-01T00:${String(minute % 60).padStart(2, '0')}:00.000Z`;
  const state = { ...creatingState(session), lastAccessedAt: at };
  return event(session, 'session.accessed', { via: 'api', at }, state, metadata);
}

/** `ledger.slot-reserved` for a session, on a ledger of one slot and `credits` granted. */
export function slotReserved(
  session: RefOf<'session'>,
  metadata: EventMetadata = aCause(),
  credits = 120,
): PendingEvent {
  const state: LedgerState = {
    slotsInUse: 1,
    sessionsEnded: 0,
    creditsGranted: credits,
    creditsAvailable: 0,
    creditsReserved: credits,
    creditsUsed: 0,
  };
  const data = { sessionId: session.id, credits };
  return event(ledgerOf(session), 'ledger.slot-reserved', data, state, metadata);
}

function event(
  aggregate: PendingEvent['aggregate'],
  type: string,
  data: unknown,
  state: unknown,
  metadata: EventMetadata,
): PendingEvent {
  return { aggregate, id: freshId('event'), type, time: CREATED_AT, data, state, metadata };
}
