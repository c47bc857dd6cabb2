import { expect } from 'vitest';
import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import type { LedgerState } from '#events/ledger.ts';
import type { SessionState } from '#events/session.ts';
import { filters } from '#events/subjects.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { createLedgerAudit } from '#src/kernel/billing/ledger-audit.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import type { RunningService } from './service.ts';
import { openLog } from './service-log.ts';

/** An organization as the whole event store has it, folded from the first event on. */
export type Audit = {
  sessions: ReadonlyMap<string, { events: RecordedOf<'session'>[]; state: SessionState }>;
  ledger: LedgerState | null;
  ledgerEvents: readonly RecordedOf<'ledger'>[];
};

/** Reads and folds all events of an organization, and checks the invariants. */
export async function auditLog(
  service: Pick<RunningService, 'runtime'>,
  organizationId = 'dev',
): Promise<Audit> {
  await using opened = await openLog(service);
  const sessions = new Map<string, { events: RecordedOf<'session'>[]; state: SessionState }>();
  const ledgerEvents: RecordedOf<'ledger'>[] = [];
  let ledger: LedgerState | null = null;
  const malformed: string[] = [];
  const agreement = createLedgerAudit();
  for await (const event of readEvents(opened.eventStore, filters.all, (text) =>
    malformed.push(text),
  )) {
    if (!('organizationId' in event.aggregate)) continue;
    if (event.aggregate.organizationId !== organizationId) continue;
    agreement.take(event);
    if (isOf('ledger', event)) {
      ledger = evolve(event.aggregate, ledger, event);
      ledgerEvents.push(event);
      expect(event.state).toEqual(ledger);
    } else if (isOf('session', event)) {
      const { id } = event.aggregate;
      const known = sessions.get(id);
      const state = evolve(event.aggregate, known?.state ?? null, event);
      expect(event.state).toEqual(state);
      sessions.set(id, { events: [...(known?.events ?? []), event], state });
    }
  }
  expect(malformed).toEqual([]);
  for (const { differences } of agreement.report()) expect(differences).toEqual([]);
  const audit = { sessions, ledger, ledgerEvents };
  expectLines(audit);
  return audit;
}

/** Each session was requested once, and has its events in the ledger, each once. */
function expectLines({ sessions, ledgerEvents }: Audit): void {
  for (const [id, { events, state }] of sessions) {
    const moves = movesOf(ledgerEvents, id);
    const extensions = events.filter(({ type }) => type === 'session.extended');
    expect([id, moves.toSorted()]).toEqual([
      id,
      [
        'slot-reserved',
        ...extensions.map(() => 'credits-reserved'),
        ...(isFinal(state.status) ? ['slot-released'] : []),
      ].toSorted(),
    ]);
    expect(events.filter(({ type }) => type === 'session.requested')).toHaveLength(1);
  }
}

/** Names of a session's ledger events, in order: `slot-reserved`, `slot-released` … */
export function movesOf(ledgerEvents: readonly RecordedOf<'ledger'>[], id: string): string[] {
  return ledgerEvents
    .filter(({ data }) => 'sessionId' in data && data.sessionId === id)
    .map(nameOf);
}

/** `requested`, `stop-requested` …: an event's type less its aggregate. */
export function nameOf({ type }: Pick<RecordedEvent, 'type'>): string {
  return type.slice(type.indexOf('.') + 1);
}
