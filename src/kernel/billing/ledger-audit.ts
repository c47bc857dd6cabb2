import { isDeepStrictEqual } from 'node:util';
import type { EgressTotals, EgressTraffic } from '#events/egress.ts';
import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import type { LedgerState } from '#events/ledger.ts';
import { emptyLedger, evolveLedger } from '#src/kernel/domain/organization/ledger.ts';

/** The result of comparing an organization's ledger with its sessions. */
export type LedgerAudit = {
  organizationId: string;
  /** All sessions ever requested, and those that have not ended. */
  sessions: number;
  open: number;
  /** The sum of the ledger's events, and what it should be according to the sessions' events. */
  ledger: LedgerState;
  bySessions: LedgerState;
  /** One sentence each; empty if ledger and sessions agree. */
  differences: readonly string[];
};

/** What the end of a session and the ledger's event for it both tell. */
type Settlement = { creditsUsed: number; creditsRefunded: number; egress?: EgressTotals };

/** What the audit keeps of a session until it has ended and its slot is released. */
type Facts = {
  reserved: number;
  /** The sum of what was recorded of its browser's traffic; null: nothing. */
  egress: EgressTotals | null;
  end: Settlement | null;
  /** The ledger's events for this session. */
  slots: number;
  ledgerReserved: number;
};

type Books = {
  ledger: LedgerState;
  granted: number;
  sessions: number;
  ended: number;
  used: number;
  egress: EgressTotals | null;
  open: Map<string, Facts>;
  differences: string[];
};

/** Differences listed for one organization; beyond that the first ones suffice. */
const DIFFERENCES_MAX = 100;

/**
 * Folds the whole event store, event after event, and compares the ledgers with the sessions: each
 * slot and each credit that one of them changed must have been changed by the other too, once.
 * Keeps only unfinished sessions in memory, so that a store of any length can be audited.
 */
export function createLedgerAudit() {
  const books = new Map<string, Books>();

  function take(event: RecordedEvent): void {
    if (!isOf('session', event) && !isOf('ledger', event)) return;
    const { organizationId } = event.aggregate;
    let found = books.get(organizationId);
    if (found === undefined) {
      found = openBooks();
      books.set(organizationId, found);
    }
    if (isOf('session', event)) takeSession(found, event);
    else takeLine(found, event);
  }
  return {
    take,
    /** One report per organization, as of the events taken so far. */
    report: (): LedgerAudit[] => [...books].map(([id, found]) => close(id, found)),
  };
}

function openBooks(): Books {
  return {
    ledger: emptyLedger,
    granted: 0,
    sessions: 0,
    ended: 0,
    used: 0,
    egress: null,
    open: new Map(),
    differences: [],
  };
}

function note(books: Books, difference: string): void {
  if (books.differences.length < DIFFERENCES_MAX) books.differences.push(difference);
}

function takeSession(books: Books, event: RecordedOf<'session'>): void {
  const { id } = event.aggregate;
  const facts = books.open.get(id);
  if (event.type === 'session.requested') {
    books.sessions += 1;
    if (facts !== undefined) note(books, `${id}: it was requested twice`);
    const reserved = event.data.creditsReserved;
    books.open.set(id, { reserved, egress: null, end: null, slots: 0, ledgerReserved: 0 });
  } else if (facts === undefined || facts.end !== null)
    note(books, `${id}: ${event.type} (${event.sequence}) where it is not, or has ended`);
  else if (event.type === 'session.extended') facts.reserved += event.data.creditsReserved;
  else if (event.type === 'session.egress-recorded') facts.egress = sumOf(facts.egress, event.data);
  else if (event.type === 'session.stopped' || event.type === 'session.failed') {
    const { creditsUsed, creditsRefunded, egress } = event.data;
    facts.end = event.data;
    books.ended += 1;
    books.used += creditsUsed;
    takeEgress(books, id, facts, egress);
    if (creditsUsed + creditsRefunded !== facts.reserved)
      note(
        books,
        `${id}: of ${facts.reserved} reserved ` +
          `${creditsUsed} were used and ${creditsRefunded} returned`,
      );
  }
}

/** Sessions that ended before there were totals have none. */
function takeEgress(books: Books, id: string, facts: Facts, egress?: EgressTotals): void {
  if (egress === undefined) return;
  const all = { hosts: [], others: { ...egress, connections: 0 } };
  books.egress = sumOf(books.egress, all);
  if (!isDeepStrictEqual(egress, facts.egress))
    note(books, `${id}: its traffic is ${textOf(egress)}, by its records ${textOf(facts.egress)}`);
}

function sumOf(before: EgressTotals | null, { hosts, others }: EgressTraffic): EgressTotals {
  const sum = { ...(before ?? { bytesSent: 0, bytesReceived: 0, refused: 0 }) };
  for (const one of [...hosts, others]) {
    sum.bytesSent += one.bytesSent;
    sum.bytesReceived += one.bytesReceived;
    sum.refused += one.refused;
  }
  return sum;
}

function textOf(egress: EgressTotals | null | undefined): string {
  if (egress === null || egress === undefined) return 'none';
  const { bytesSent, bytesReceived, refused } = egress;
  return `${bytesSent} bytes sent, ${bytesReceived} received, ${refused} refused`;
}

function takeLine(books: Books, event: RecordedOf<'ledger'>): void {
  const { sequence, data } = event;
  books.ledger = evolveLedger(books.ledger, event);
  if (event.state !== null && !isDeepStrictEqual(event.state, books.ledger))
    note(books, `line ${sequence} carries another state than the lines up to it add up to`);
  if (books.ledger.creditsAvailable < 0) note(books, `after line ${sequence} credits are below 0`);
  if (event.type === 'ledger.carried-forward') return;
  if (event.type === 'ledger.credits-granted') {
    books.granted += event.data.credits;
    return;
  }
  const id = 'sessionId' in data ? data.sessionId : '';
  const facts = books.open.get(id);
  if (facts === undefined) {
    note(books, `line ${sequence}: ${event.type} for ${id}, which is not, or has ended`);
    return;
  }
  if (event.type === 'ledger.slot-released') release(books, id, facts, event.data);
  else {
    if (event.type === 'ledger.slot-reserved') facts.slots += 1;
    facts.ledgerReserved += event.data.credits;
  }
}

function release(
  books: Books,
  id: string,
  facts: Facts,
  { creditsUsed, creditsRefunded, egress }: Settlement,
): void {
  books.open.delete(id);
  compareReserved(books, id, facts);
  const { end } = facts;
  if (end === null) {
    note(books, `${id}: its slot was released, and it has not ended`);
    books.open.set(id, facts);
    return;
  }
  if (end.creditsUsed !== creditsUsed || end.creditsRefunded !== creditsRefunded)
    note(
      books,
      `${id}: used ${end.creditsUsed} and returned ${end.creditsRefunded}; ` +
        `by the ledger ${creditsUsed} and ${creditsRefunded}`,
    );
  if (!isDeepStrictEqual(end.egress, egress))
    note(books, `${id}: its traffic is ${textOf(end.egress)}, by the ledger ${textOf(egress)}`);
}

function compareReserved(books: Books, id: string, { slots, ledgerReserved, reserved }: Facts) {
  if (slots !== 1) note(books, `${id}: ${slots} slots were reserved for it`);
  if (ledgerReserved !== reserved)
    note(books, `${id}: it reserved ${reserved} credits, by the ledger ${ledgerReserved}`);
}

function close(organizationId: string, books: Books): LedgerAudit {
  // `report` may be called again: differences found here are not kept.
  const found: Books = { ...books, differences: [...books.differences] };
  let reserved = 0;
  for (const [id, facts] of books.open) {
    compareReserved(found, id, facts);
    if (facts.end === null) reserved += facts.reserved;
    else note(found, `${id}: it has ended, and its slot was not released`);
  }
  const { granted, used, egress, sessions, ended, ledger } = books;
  const bySessions: LedgerState = {
    slotsInUse: sessions - ended,
    sessionsEnded: ended,
    creditsGranted: granted,
    creditsAvailable: granted - reserved - used,
    creditsReserved: reserved,
    creditsUsed: used,
    ...(egress === null ? {} : { egress }),
  };
  const { egress: _, ...numbers } = bySessions;
  for (const field of Object.keys(numbers) as (keyof typeof numbers)[])
    if (numbers[field] !== ledger[field])
      note(found, `${field} is ${ledger[field]}, by the sessions ${numbers[field]}`);
  if (!isDeepStrictEqual(ledger.egress, bySessions.egress))
    note(found, `egress is ${textOf(ledger.egress)}, by the sessions ${textOf(bySessions.egress)}`);
  const { differences } = found;
  return { organizationId, sessions, open: sessions - ended, ledger, bySessions, differences };
}
