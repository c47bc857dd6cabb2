import { isOf } from '#events/events.ts';
import { filtersFor } from '#events/subjects.ts';
import { MalformedEvent } from '#events/codec.ts';
import { emptyLedger } from '#src/domain/organization/ledger.ts';
import { billedTypes, evolveBill, type Bill } from './bill.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { loadAt } from '../log/past.ts';
import { readRange } from '#src/event-store/read-range.ts';

/** A piece of the log: the events behind `after`, up to and including `upTo`. */
export type Span = { after: number; upTo: number };

/** What an organization used in a span; one credit is one minute. */
export type UsageTotals = {
  sessions: number;
  credits: number;
  /** At the span's end: sessions that had not ended, and the credits they held. */
  open: number;
  creditsReserved: number;
};

/** What one session cost, with every event that had a part in it. */
export type UsageLine = Bill & {
  sessionId: string;
  creditsRefunded: number;
  /** Oldest first; the last is the ledger's. */
  events: readonly { id: string; sequence: number; type: string }[];
};

/** Lines whose sessions' histories are read at once; each is some 4 ms of the log's time. */
const AT_ONCE = 8;

/**
 * The span of two moments (ms since the epoch), the second not in it; null: as far as the log goes.
 * It is cut by the log's own clock, so that spans which meet share nothing and miss nothing.
 */
export async function spanOf(log: EventLog, from: number | null, to: number | null): Promise<Span> {
  const before = (at: number) => log.sequenceBefore(new Date(at).toISOString());
  const [after, upTo] = await Promise.all([
    from === null ? 0 : before(from),
    to === null ? log.lastSequence() : before(to),
  ]);
  return { after, upTo };
}

/**
 * Two reads however long the span and however many its sessions: the ledger's lines carry what they
 * add up to.
 */
export async function usageTotals(
  log: EventLog,
  organizationId: string,
  { after, upTo }: Span,
): Promise<UsageTotals> {
  const ledger = { kind: 'ledger', organizationId } as const;
  const [begin, end] = await Promise.all(
    [after, upTo].map(async (at) => (await loadAt<'ledger'>(log, ledger, at)).state ?? emptyLedger),
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
 * A page of the sessions whose use was settled in the span, in the order of that; `next` is where
 * the following page begins (its `after`), null where nothing follows.
 */
export async function usageLines(
  log: EventLog,
  organizationId: string,
  span: Span,
  limit: number,
): Promise<{ lines: UsageLine[]; next: number | null }> {
  const released: Settled[] = [];
  const subjects = filtersFor(organizationId, 'ledger.slot-released');
  const range = { ...span, subjects, batchMax: limit + 1, onMalformed: refuse };
  reading: for await (const batch of readRange(log, range))
    for (const event of batch) {
      if (!isOf('ledger', event) || event.type !== 'ledger.slot-released') continue;
      released.push(event);
      if (released.length > limit) break reading;
    }
  const page = released.slice(0, limit);
  const lines: UsageLine[] = [];
  for (let done = 0; done < page.length; done += AT_ONCE) {
    const some = page.slice(done, done + AT_ONCE);
    lines.push(...(await Promise.all(some.map((line) => lineOf(log, organizationId, line)))));
  }
  return { lines, next: released.length > limit ? (page.at(-1)?.sequence ?? null) : null };
}

type Settled = {
  id: string;
  sequence: number;
  type: string;
  data: { sessionId: string; creditsUsed: number; creditsRefunded: number };
};

/** The charge is the ledger's; the session's events say how it came about. */
async function lineOf(
  log: EventLog,
  organizationId: string,
  { id, sequence, type, data: { sessionId, creditsUsed, creditsRefunded } }: Settled,
): Promise<UsageLine> {
  const session = { kind: 'session', organizationId, id: sessionId } as const;
  let bill: Bill | null = null;
  const events = [];
  for await (const event of log.history<'session'>(session)) {
    bill = evolveBill(bill, event);
    if (!billedTypes.has(event.type)) continue;
    events.push({ id: event.id, sequence: event.sequence, type: event.type });
  }
  if (bill === null) throw new MalformedEvent(`line ${sequence} is for no session`);
  events.push({ id, sequence, type });
  return { ...bill, sessionId, creditsUsed, creditsRefunded, events };
}

function refuse({ reason }: { reason: string }): never {
  throw new MalformedEvent(reason);
}
