import type { EgressTotals } from '#events/egress.ts';
import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import type { Span } from '#src/kernel/billing/usage.ts';
import { billedTypes, evolveBill, type Bill } from '#src/kernel/billing/bill.ts';

type EventReference = Pick<RecordedEvent, 'id' | 'sequence' | 'type'>;

/** What the ledger charged for one session in the span; `events` led to it, oldest first. */
export type StatementLine = {
  sessionId: string;
  settledAt: string;
  sequence: number;
  creditsUsed: number;
  creditsRefunded: number;
  /** null: it has no egress rules, or no traffic was recorded. */
  egress: EgressTotals | null;
  events: readonly EventReference[];
};

/** A statement over a span. Balances include reserved credits, which are not used yet. */
export type Statement = {
  opening: number;
  granted: number;
  closing: number;
  grants: readonly (EventReference & { time: string; credits: number })[];
  lines: readonly StatementLine[];
  /** By session id: the bill folded from its events, those events, the last one's sequence. */
  bills: ReadonlyMap<string, SessionBill>;
  /** Ids of all sessions that the ledger has settled, inside the span or not. */
  settled: ReadonlySet<string>;
};

type SessionBill = { bill: Bill | null; events: EventReference[]; sequence: number };

/** Folds all events of an organization, in order, into the statement of the span. */
export function openStatement({ after, upTo }: Span) {
  const bills = new Map<string, SessionBill>();
  const settled = new Set<string>();
  const lines: StatementLine[] = [];
  const grants: Statement['grants'][number][] = [];
  let [opening, granted, used] = [0, 0, 0];

  function takeSessionEvent(event: RecordedOf<'session'>): void {
    const { id, type, sequence } = event;
    const before = bills.get(event.aggregate.id) ?? { bill: null, events: [], sequence: 0 };
    if (!billedTypes.has(type)) return;
    const events = [...before.events, { id, type, sequence }];
    bills.set(event.aggregate.id, { bill: evolveBill(before.bill, event), events, sequence });
  }

  function takeLedgerEvent(event: RecordedOf<'ledger'>): void {
    const { id, type, sequence, time } = event;
    if (sequence > upTo) {
      if (event.type === 'ledger.slot-released') settled.add(event.data.sessionId);
      return;
    }
    if (event.type === 'ledger.credits-granted') {
      const { credits } = event.data;
      if (sequence <= after) opening += credits;
      else {
        granted += credits;
        grants.push({ id, type, sequence, time, credits });
      }
    } else if (event.type === 'ledger.slot-released') {
      const { sessionId, creditsUsed, creditsRefunded, egress = null } = event.data;
      settled.add(sessionId);
      if (sequence <= after) {
        opening -= creditsUsed;
        bills.delete(sessionId);
        return;
      }
      used += creditsUsed;
      const events = [...(bills.get(sessionId)?.events ?? []), { id, type, sequence }];
      const amounts = { creditsUsed, creditsRefunded, egress };
      lines.push({ sessionId, settledAt: time, sequence, ...amounts, events });
    }
  }
  function close(): Statement {
    const closing = opening + granted - used;
    return { opening, granted, closing, grants, lines, bills, settled };
  }
  return { takeSession: takeSessionEvent, takeLine: takeLedgerEvent, close };
}

/** A sentence for each difference between the ledger's charges and the sessions' own events. */
export function compareWithSessions(
  { lines, bills, settled }: Statement,
  { upTo }: Span,
): string[] {
  const differences: string[] = [];
  const seen = new Set<string>();
  for (const { sessionId, creditsUsed, creditsRefunded, sequence } of lines) {
    const bill = bills.get(sessionId)?.bill ?? null;
    if (seen.has(sessionId)) differences.push(`${sessionId}: charged twice (event ${sequence})`);
    seen.add(sessionId);
    if (bill === null || bill.endedAt === null)
      differences.push(`${sessionId}: charged (event ${sequence}) but has not ended`);
    else if (
      bill.creditsUsed !== creditsUsed ||
      bill.creditsReserved - bill.creditsUsed !== creditsRefunded
    )
      differences.push(
        `${sessionId}: charged ${creditsUsed} and returned ${creditsRefunded}; by its events ` +
          `${bill.creditsUsed} and ${bill.creditsReserved - bill.creditsUsed}`,
      );
  }
  for (const [sessionId, { bill, sequence }] of bills)
    if (bill?.endedAt != null && sequence <= upTo && !settled.has(sessionId))
      differences.push(`${sessionId}: ended but was not charged`);
  return differences;
}
