import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import type { Span } from '#src/billing/usage.ts';
import { billedTypes, evolveBill, type Bill } from '#src/billing/bill.ts';

type Named = Pick<RecordedEvent, 'id' | 'sequence' | 'type'>;

/** What one session was charged in the span, by the ledger; `events` made it, oldest first. */
export type StatementLine = {
  sessionId: string;
  settledAt: string;
  sequence: number;
  creditsUsed: number;
  creditsRefunded: number;
  events: readonly Named[];
};

/** Balances count what is reserved: it is the organization's until it is used. */
export type Statement = {
  opening: number;
  granted: number;
  closing: number;
  grants: readonly (Named & { time: string; credits: number })[];
  lines: readonly StatementLine[];
  /** By session: its bill by its own events, those events, and its last one's sequence. */
  bills: ReadonlyMap<string, SessionBill>;
  /** Sessions that the ledger settled, whenever. */
  settled: ReadonlySet<string>;
};

type SessionBill = { bill: Bill | null; events: Named[]; sequence: number };

/** Takes all of an organization's events in their order, and makes the statement of the span. */
export function openStatement({ after, upTo }: Span) {
  const bills = new Map<string, SessionBill>();
  const settled = new Set<string>();
  const lines: StatementLine[] = [];
  const grants: Statement['grants'][number][] = [];
  let [opening, granted, used] = [0, 0, 0];

  function takeSession(event: RecordedOf<'session'>): void {
    const { id, type, sequence } = event;
    const before = bills.get(event.aggregate.id) ?? { bill: null, events: [], sequence: 0 };
    if (!billedTypes.has(type)) return;
    const events = [...before.events, { id, type, sequence }];
    bills.set(event.aggregate.id, { bill: evolveBill(before.bill, event), events, sequence });
  }

  function takeLine(event: RecordedOf<'ledger'>): void {
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
      const { sessionId, creditsUsed, creditsRefunded } = event.data;
      settled.add(sessionId);
      if (sequence <= after) {
        opening -= creditsUsed;
        bills.delete(sessionId);
        return;
      }
      used += creditsUsed;
      const events = [...(bills.get(sessionId)?.events ?? []), { id, type, sequence }];
      const amounts = { creditsUsed, creditsRefunded };
      lines.push({ sessionId, settledAt: time, sequence, ...amounts, events });
    }
  }
  function close(): Statement {
    const closing = opening + granted - used;
    return { opening, granted, closing, grants, lines, bills, settled };
  }
  return { takeSession, takeLine, close };
}

/** In words, where the ledger charged otherwise than the sessions' own events say. */
export function compareWithSessions(
  { lines, bills, settled }: Statement,
  { upTo }: Span,
): string[] {
  const differences: string[] = [];
  const seen = new Set<string>();
  for (const { sessionId, creditsUsed, creditsRefunded, sequence } of lines) {
    const bill = bills.get(sessionId)?.bill ?? null;
    if (seen.has(sessionId)) differences.push(`${sessionId}: it was charged twice (${sequence})`);
    seen.add(sessionId);
    if (bill === null || bill.endedAt === null)
      differences.push(`${sessionId}: it was charged (${sequence}) and has not ended`);
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
      differences.push(`${sessionId}: it has ended and was not charged`);
  return differences;
}
