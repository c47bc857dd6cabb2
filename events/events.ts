import type { TSchema } from 'typebox';
import { archiveEvents, ArchiveState, type ArchiveEvent } from './archive/archive.ts';
import type { Recorded } from './envelope.ts';
import { ledgerEvents, LedgerState, type LedgerEvent } from './ledger.ts';
import { organizationEvents, OrganizationState, type OrganizationEvent } from './organization.ts';
import { profileEvents, ProfileState, type ProfileEvent } from './profile.ts';
import { serverEvents, ServerState, type ServerEvent } from './server.ts';
import { sessionEvents, SessionState, type SessionEvent } from './session.ts';
import type { AggregateKind, AggregateRef } from './subjects.ts';
import { workloadEvents, WorkloadState, type WorkloadEvent } from './workload.ts';

/** The events of each kind of aggregate, and the state that they carry. */
export type Aggregates = {
  session: { event: SessionEvent; state: SessionState };
  ledger: { event: LedgerEvent; state: LedgerState };
  organization: { event: OrganizationEvent; state: OrganizationState };
  profile: { event: ProfileEvent; state: ProfileState };
  server: { event: ServerEvent; state: ServerState };
  workload: { event: WorkloadEvent; state: WorkloadState };
  archive: { event: ArchiveEvent; state: ArchiveState };
};

type AggregateSchemas = { events: Record<string, TSchema>; state: TSchema; stateVersion: number };

/**
 * The schemas by kind. `stateVersion` must be raised when the meaning of the fold changes: a state
 * of another version is not used, and the history is folded instead.
 */
export const aggregates: Record<AggregateKind, AggregateSchemas> = {
  session: { events: sessionEvents, state: SessionState, stateVersion: 1 },
  ledger: { events: ledgerEvents, state: LedgerState, stateVersion: 2 },
  organization: { events: organizationEvents, state: OrganizationState, stateVersion: 1 },
  profile: { events: profileEvents, state: ProfileState, stateVersion: 1 },
  server: { events: serverEvents, state: ServerState, stateVersion: 1 },
  workload: { events: workloadEvents, state: WorkloadState, stateVersion: 1 },
  archive: { events: archiveEvents, state: ArchiveState, stateVersion: 1 },
};

export type RefOf<Kind extends AggregateKind> = Extract<AggregateRef, { kind: Kind }>;

/** An event of one kind of aggregate as stored, with the aggregate it belongs to. */
export type RecordedOf<Kind extends AggregateKind> = {
  [K in Kind]: Recorded<Aggregates[K]['event'], Aggregates[K]['state']> & { aggregate: RefOf<K> };
}[Kind];

/** Any event as stored. Use `isOf` to narrow it to a kind. */
export type RecordedEvent = RecordedOf<AggregateKind>;

/** An event with its aggregate's state after it, whether the event carried it or it was folded. */
export type EventWithState<Kind extends AggregateKind = AggregateKind> = {
  [K in Kind]: RecordedOf<K> & { state: Aggregates[K]['state'] };
}[Kind];

/** Narrows an event to one kind of aggregate. */
export function isOf<Kind extends AggregateKind, Event extends RecordedEvent>(
  kind: Kind,
  event: Event,
): event is Extract<Event, { aggregate: { kind: Kind } }> {
  return event.aggregate.kind === kind;
}

/** Narrows an event to one that carries a state of the current version. */
export function hasState<Event extends RecordedEvent>(
  event: Event,
): event is Event & { state: NonNullable<Event['state']> } {
  return event.state !== null;
}
