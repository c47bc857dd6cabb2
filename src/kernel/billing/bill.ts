import type { SessionEvent } from '#events/session.ts';
import { minutesOf } from '#src/kernel/domain/session/duration.ts';

/** The cost of a session, computed from its own events alone; times are ISO 8601 UTC. */
export type Bill = {
  name: string;
  userId: string;
  creditsReserved: number;
  /** null: it never had a browser. */
  startedAt: string | null;
  /** Whether a server has accepted it and is launching a browser for it. */
  isLaunching: boolean;
  /** When the stop was requested or a failure struck; null: neither happened. */
  billedUntil: string | null;
  /** null: it has not ended. */
  endedAt: string | null;
  endedReason: string | null;
  /**
   * Minutes begun between `startedAt` and `billedUntil`, at most as many as were reserved; one if
   * it was stopped during its launch.
   */
  creditsUsed: number;
};

/**
 * The bill after the event; null before the first one. Events without a cost leave it unchanged.
 */
export function evolveBill(bill: Bill | null, event: SessionEvent): Bill | null {
  if (event.type === 'session.requested') {
    const { name, userId, creditsReserved } = event.data;
    const none = { startedAt: null, billedUntil: null, endedAt: null, endedReason: null };
    return { name, userId, creditsReserved, ...none, isLaunching: false, creditsUsed: 0 };
  }
  if (bill === null) return null;
  switch (event.type) {
    case 'session.extended':
      return { ...bill, creditsReserved: bill.creditsReserved + event.data.creditsReserved };
    case 'session.assigned':
      return { ...bill, isLaunching: true };
    case 'session.requeued':
      return { ...bill, isLaunching: false };
    case 'session.activated':
      return { ...bill, isLaunching: false, startedAt: event.data.startedAt };
    case 'session.stop-requested':
      return { ...bill, billedUntil: event.data.at };
    case 'session.stopped':
      return settle(bill, event.data, bill.isLaunching ? chargedLaunch(event.data) : 0);
    case 'session.failed':
      return settle(bill, event.data, 0);
    default:
      return bill;
  }
}

/** Event types that affect the cost of a session. */
export const billedTypes: ReadonlySet<SessionEvent['type']> = new Set([
  'session.requested',
  'session.extended',
  'session.assigned',
  'session.requeued',
  'session.activated',
  'session.stop-requested',
  'session.stopped',
  'session.failed',
] as const);

/**
 * The charge of a launch that was stopped: one credit, and none in sessions that ended before there
 * was this charge.
 */
function chargedLaunch({ creditsUsed }: { creditsUsed: number }): number {
  return Math.min(creditsUsed, LAUNCH_CREDITS);
}

/** The rule of src/kernel/domain/session/decide.ts, written again: an audit compares the two. */
const LAUNCH_CREDITS = 1;

function settle(
  bill: Bill,
  { endedAt, reason }: { endedAt: string; reason: string },
  leastUsed: number,
): Bill {
  const billedUntil = bill.billedUntil ?? endedAt;
  const ranMs = bill.startedAt === null ? 0 : Date.parse(billedUntil) - Date.parse(bill.startedAt);
  const creditsUsed = Math.min(Math.max(leastUsed, minutesOf(ranMs)), bill.creditsReserved);
  return { ...bill, isLaunching: false, billedUntil, endedAt, endedReason: reason, creditsUsed };
}
