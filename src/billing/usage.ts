import { isOf } from '#events/events.ts';
import { filtersFor } from '#events/subjects.ts';
import { MalformedEvent } from '#events/codec.ts';
import { emptyLedger } from '#src/domain/organization/ledger.ts';
import { billedTypes, evolveBill, type Bill } from './bill.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { loadState } from '#src/event-store/load-state.ts';
import { refuseUnreadable } from '#src/event-store/unreadable.ts';

/** A range of the event store: the events after `after`, up to and including `upTo`. */
export type Span = { after: number; upTo: number };

/** An organization's usage in a range; one credit is one minute. */
export type UsageTotals = {
  sessions: number;
  credits: number;
  /** At the end of the range: sessions that had not ended, and the credits reserved for them. */
  open: number;
  creditsReserved: number;
};

/** The cost of one session, with all events that it follows from. */
export type UsageLine = Bill & {
  sessionId: string;
  creditsRefunded: number;
  /** Oldest first; the last one is the ledger's. */
  events: readonly { id: string; sequence: number; type: string }[];
};

/** Sessions whose histories are read concurrently; each takes the event store some 0.2 ms. */
const AT_ONCE = 8;

/**
 * The range between two moments (ms since the epoch), the second one excluded; null: up to the last
 * event. It is cut by the event store's own clock, so that adjacent ranges neither overlap nor
 * leave a gap.
 */
export async function spanOf(
  eventStore: EventStore,
  from: number | null,
  to: number | null,
): Promise<Span> {
  const before = (at: number) => eventStore.sequenceBefore(new Date(at).toISOString());
  const [after, upTo] = await Promise.all([
    from === null ? 0 : before(from),
    to === null ? eventStore.lastSequence() : before(to),
  ]);
  return { after, upTo };
}

/**
 * Two reads, however long the range and however many its sessions: ledger events carry running
 * totals.
 */
export async function usageTotals(
  eventStore: EventStore,
  organizationId: string,
  { after, upTo }: Span,
): Promise<UsageTotals> {
  const ledger = { kind: 'ledger', organizationId } as const;
  const [begin, end] = await Promise.all(
    [after, upTo].map(
      async (at) =>
        (await loadState<'ledger'>(eventStore, ledger, { upTo: at })).state ?? emptyLedger,
    ),
  );
  const [first, last] = [begin ?? emptyLedger, end ?? emptyLedger];
  return {
    sessions: last.sessionsEnded - first.sessionsEnded,
    credits: last.creditsUsed - first.creditsUsed,
    open: last.slotsInUse,
    creditsReserved: last.creditsReserved,
  };
}

/**
 * A page of the sessions whose usage was settled in the range, in that order. `next` is the `after`
 * of the following page, null if there is none.
 */
export async function usageLines(
  eventStore: EventStore,
  organizationId: string,
  span: Span,
  limit: number,
): Promise<{ lines: UsageLine[]; next: number | null }> {
  const released: Settled[] = [];
  const subjects = filtersFor(organizationId, 'ledger.slot-released');
  const range = {
    ...span,
    subjects,
    includesArchive: true,
    batchMax: limit + 1,
    onUnreadable: refuseUnreadable,
  };
  reading: for await (const batch of eventStore.read(range))
    for (const event of batch) {
      if (!isOf('ledger', event) || event.type !== 'ledger.slot-released') continue;
      released.push(event);
      if (released.length > limit) break reading;
    }
  const page = released.slice(0, limit);
  const lines: UsageLine[] = [];
  for (let done = 0; done < page.length; done += AT_ONCE) {
    const some = page.slice(done, done + AT_ONCE);
    lines.push(
      ...(await Promise.all(some.map((line) => lineOf(eventStore, organizationId, line)))),
    );
  }
  return { lines, next: released.length > limit ? (page.at(-1)?.sequence ?? null) : null };
}

type Settled = {
  id: string;
  sequence: number;
  type: string;
  data: { sessionId: string; creditsUsed: number; creditsRefunded: number };
};

/** The charge is the ledger's; the session's events explain it. */
async function lineOf(
  eventStore: EventStore,
  organizationId: string,
  { id, sequence, type, data: { sessionId, creditsUsed, creditsRefunded } }: Settled,
): Promise<UsageLine> {
  const session = { kind: 'session', organizationId, id: sessionId } as const;
  let bill: Bill | null = null;
  const events = [];
  for await (const event of eventStore.history<'session'>(session, { types: billedTypes })) {
    bill = evolveBill(bill, event);
    events.push({ id: event.id, sequence: event.sequence, type: event.type });
  }
  if (bill === null)
    throw new MalformedEvent(`ledger event ${sequence} names a session without events`);
  events.push({ id, sequence, type });
  return { ...bill, sessionId, creditsUsed, creditsRefunded, events };
}
