import type { TSchema } from 'typebox';
import type { Recorded } from './envelope.ts';
import { ledgerEvents, LedgerState, type LedgerEvent } from './ledger.ts';
import { organizationEvents, OrganizationState, type OrganizationEvent } from './organization.ts';
import { serverEvents, ServerState, type ServerEvent } from './server.ts';
import { sessionEvents, SessionState, type SessionEvent } from './session.ts';
import type { AggregateKind, AggregateRef } from './subjects.ts';
import { workloadEvents, WorkloadState, type WorkloadEvent } from './workload.ts';

/** What each kind of aggregate may record, and the state its events carry. */
export type Aggregates = {
  session: { event: SessionEvent; state: SessionState };
  ledger: { event: LedgerEvent; state: LedgerState };
  organization: { event: OrganizationEvent; state: OrganizationState };
  server: { event: ServerEvent; state: ServerState };
  workload: { event: WorkloadEvent; state: WorkloadState };
};

type AggregateSchemas = { events: Record<string, TSchema>; state: TSchema; stateVersion: number };

/**
 * The schemas by kind. `stateVersion` grows when the fold changes its meaning: a state of another
 * version is not trusted, and the history is folded instead.
 */
export const aggregates: Record<AggregateKind, AggregateSchemas> = {
  session: { events: sessionEvents, state: SessionState, stateVersion: 1 },
  ledger: { events: ledgerEvents, state: LedgerState, stateVersion: 2 },
  organization: { events: organizationEvents, state: OrganizationState, stateVersion: 1 },
  server: { events: serverEvents, state: ServerState, stateVersion: 1 },
  workload: { events: workloadEvents, state: WorkloadState, stateVersion: 1 },
};

export type RefOf<Kind extends AggregateKind> = Extract<AggregateRef, { kind: Kind }>;

/** An event of one kind of aggregate as it stands in the log, with the aggregate it belongs to. */
export type RecordedOf<Kind extends AggregateKind> = {
  [K in Kind]: Recorded<Aggregates[K]['event'], Aggregates[K]['state']> & { aggregate: RefOf<K> };
}[Kind];

/** Any event as it stands in the log. Tell the kinds apart with `isOf`. */
export type RecordedEvent = RecordedOf<AggregateKind>;

/** Narrows an event to one kind of aggregate. */
export function isOf<Kind extends AggregateKind>(
  kind: Kind,
  event: RecordedEvent,
): event is Extract<RecordedEvent, { aggregate: { kind: Kind } }> {
  return event.aggregate.kind === kind;
}
