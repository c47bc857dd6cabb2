import type { SessionEvent } from '#events/session.ts';
import { minutesOf } from '#src/domain/session/duration.ts';

/** The cost of a session, computed from its own events alone; times are ISO 8601 UTC. */
export type Bill = {
  name: string;
  userId: string;
  creditsReserved: number;
  /** null: it never had a browser. */
  startedAt: string | null;
  /** When the stop was requested or a failure struck; null: neither happened. */
  billedUntil: string | null;
  /** null: it has not ended. */
  endedAt: string | null;
  endedReason: string | null;
  /** Minutes begun between `startedAt` and `billedUntil`, at most as many as were reserved. */
  creditsUsed: number;
};

/**
 * The bill after the event; null before the first one. Events without a cost leave it unchanged.
 */
export function evolveBill(bill: Bill | null, event: SessionEvent): Bill | null {
  if (event.type === 'session.requested') {
    const { name, userId, creditsReserved } = event.data;
    const none = { startedAt: null, billedUntil: null, endedAt: null, endedReason: null };
    return { name, userId, creditsReserved, ...none, creditsUsed: 0 };
  }
  if (bill === null) return null;
  switch (event.type) {
    case 'session.extended':
      return { ...bill, creditsReserved: bill.creditsReserved + event.data.creditsReserved };
    case 'session.activated':
      return { ...bill, startedAt: event.data.startedAt };
    case 'session.stop-requested':
      return { ...bill, billedUntil: event.data.at };
    case 'session.stopped':
    case 'session.failed':
      return settle(bill, event.data);
    default:
      return bill;
  }
}

/** Event types that affect the cost of a session. */
export const billedTypes: ReadonlySet<SessionEvent['type']> = new Set([
  'session.requested',
  'session.extended',
  'session.activated',
  'session.stop-requested',
  'session.stopped',
  'session.failed',
] as const);

function settle(bill: Bill, { endedAt, reason }: { endedAt: string; reason: string }): Bill {
  const billedUntil = bill.billedUntil ?? endedAt;
  const ranMs = bill.startedAt === null ? 0 : Date.parse(billedUntil) - Date.parse(bill.startedAt);
  const creditsUsed = Math.min(minutesOf(ranMs), bill.creditsReserved);
  return { ...bill, billedUntil, endedAt, endedReason: reason, creditsUsed };
}
