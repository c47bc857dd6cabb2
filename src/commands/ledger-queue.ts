import { setTimeout as pause } from 'node:timers/promises';
import type { Cause } from '#events/envelope.ts';
import type { LedgerState } from '#events/ledger.ts';
import { filterOf } from '#events/subjects.ts';
import { isRejected, Unavailable, type Rejected } from '#src/errors.ts';
import {
  decideLedger,
  emptyLedger,
  evolveLedger,
  type LedgerCommand,
} from '#src/domain/organization/ledger.ts';
import type { Appended, Change, EventLog } from '#src/event-store/event-store.ts';
import { load, type Loaded } from '#src/event-store/load-state.ts';
import type { Recent } from '#src/event-store/state-cache.ts';
import { toChange } from './to-change.ts';

/** What a command wants of a session and, with it or not at all, of its organization's ledger. */
export type Posting = {
  organizationId: string;
  /** Of the session; there may be several events in it. */
  changes: readonly Change[];
  moves: readonly LedgerCommand[];
  cause: Cause;
  /** The ledger as it was just read, where it was; taken where no newer one is known. */
  ledger: Loaded<'ledger'> | null;
  /** True after a lost answer: an append is known again by one command, so it goes by itself. */
  isAlone: boolean;
};

/** The sequences are those of the posting's own changes; a refusal is the ledger's, as of now. */
type Posted = Appended | Rejected;

/**
 * The ledgers' lines of one process. All moves of an organization's ledger meet in one aggregate:
 * here they stand in line instead of racing each other, and those that came while the last append
 * was under way go together in the next one. Only processes conflict with each other then.
 */
export type Ledgers = {
  /** @throws Unavailable where the log does not answer, or the ledger is too contended */
  post(posting: Posting): Promise<Posted>;
  /** Whether something stands in the organization's line, so that its ledger need not be read. */
  isBusy(organizationId: string): boolean;
};

/** Postings of one append: some 4 events each at most, and the log takes 1,000 in an append. */
const TOGETHER_MAX = 64;
/**
 * Postings of one organization that may wait: seconds of work; who comes then is told to return.
 */
const WAITING_MAX = 5_000;
/**
 * Appends that may be tried for one group, and the longest pause between two; full jitter below.
 */
const TRIES_MAX = 100;
const PAUSE_MAX_MS = 20;

type Desk = { log: EventLog; now: () => number; recent?: Recent };

type Entry = {
  posting: Posting;
  sessions: readonly string[];
  isAlone: boolean;
  settle: (posted: Posted) => void;
  fail: (error: unknown) => void;
};

/** Each line exists while something stands in it. */
export function openLedgers(desk: Desk): Ledgers {
  const lines = new Map<string, Entry[]>();

  function post(posting: Posting): Promise<Posted> {
    const { organizationId, changes, isAlone } = posting;
    const { promise, resolve, reject } = Promise.withResolvers<Posted>();
    const sessions = changes.map(({ aggregate }) => filterOf(aggregate));
    const entry: Entry = { posting, sessions, isAlone, settle: resolve, fail: reject };
    const line = lines.get(organizationId);
    if (line === undefined) {
      const begun = [entry];
      lines.set(organizationId, begun);
      void work(desk, organizationId, begun).finally(() => lines.delete(organizationId));
    } else if (line.length < WAITING_MAX) line.push(entry);
    else reject(new Unavailable('event-log', new Error(`${WAITING_MAX} wait for a ledger`)));
    return promise;
  }
  return { post, isBusy: (organizationId) => lines.has(organizationId) };
}

/** Takes group after group until nobody waits. Where the log does not answer, nobody waits on. */
async function work(desk: Desk, organizationId: string, line: Entry[]): Promise<void> {
  let known: Loaded<'ledger'> | null = null;
  while (line.length > 0) {
    const group = takeGroup(line);
    try {
      known = await settleGroup(desk, organizationId, group, known);
      sendBack(line, group);
    } catch (error) {
      known = null;
      const isOneAtFault = !(error instanceof Unavailable) && group.length > 1;
      // A bug in one command is not the others': which one it is shows when each goes by itself.
      if (isOneAtFault) line.unshift(...group.map((entry) => ({ ...entry, isAlone: true })));
      else if (error instanceof Unavailable) failAll([...group, ...line.splice(0)], error);
      else failAll(group, error);
    }
  }
}

/** The next who go together, in their order: one a session, and who is alone by itself. */
function takeGroup(line: Entry[]): Entry[] {
  const sessions = new Set<string>();
  let count = 0;
  for (const entry of line) {
    const isSecond = entry.sessions.some((session) => sessions.has(session));
    if (count > 0 && (count === TOGETHER_MAX || isSecond || entry.isAlone)) break;
    for (const session of entry.sessions) sessions.add(session);
    count += 1;
    if (entry.isAlone) break;
  }
  return line.splice(0, count);
}

/** Who waits with a decision on a session that the group has just moved has to decide again. */
function sendBack(line: Entry[], group: readonly Entry[]): void {
  const moved = new Set(group.flatMap(({ sessions }) => sessions));
  const isStale = ({ sessions }: Entry) => sessions.some((session) => moved.has(session));
  for (const { settle } of line.filter(isStale)) settle({ outcome: 'conflict' });
  line.splice(0, line.length, ...line.filter((entry) => !isStale(entry)));
}

function failAll(entries: readonly Entry[], error: unknown): void {
  for (const { fail } of entries) fail(error);
}

/**
 * Decides and appends what the group wants. A rival's move of the ledger costs another try of the
 * same; a session that has moved on sends all back to their commands, to be decided anew.
 * @returns the ledger after it, as far as it is known
 * @throws Unavailable
 */
async function settleGroup(
  desk: Desk,
  organizationId: string,
  entries: readonly Entry[],
  known: Loaded<'ledger'> | null,
): Promise<Loaded<'ledger'> | null> {
  let group = entries;
  const aggregate = { kind: 'ledger', organizationId } as const;
  const fromLeader = () => load<'ledger'>(desk.log, aggregate, { fromLeader: true });
  const remembered = known ?? group[0]?.posting.ledger ?? desk.recent?.of<'ledger'>(aggregate);
  let ledger = remembered ?? (await load<'ledger'>(desk.log, aggregate));
  let isCurrent = false;
  for (let attempt = 1; attempt <= TRIES_MAX; attempt += 1) {
    let planned = plan(desk, organizationId, group, ledger);
    if (planned.refused.length + planned.impossible.length > 0 && !isCurrent) {
      // A refusal counts only on the leader's word, given after it was asked for.
      ledger = await fromLeader();
      isCurrent = true;
      planned = plan(desk, organizationId, group, ledger);
    }
    const { accepted, refused, impossible, changes, state } = planned;
    // Their sessions have been moved by somebody who has moved the ledger, too.
    for (const { settle } of impossible) settle({ outcome: 'conflict' });
    group = group.filter((entry) => !impossible.includes(entry));
    if (accepted.length === 0) {
      settleRefused(refused);
      return ledger;
    }
    const appended = await desk.log.append(changes);
    if (appended.outcome === 'appended') {
      settleRefused(refused);
      settleAccepted(accepted, appended.sequences);
      const after = { state, sequence: appended.sequences.at(-1) ?? 0 };
      desk.recent?.remember(aggregate, after);
      return after;
    }
    // Before the read, not after it: what it says is to be as fresh as can be.
    if (attempt > 1) await pause(Math.random() * Math.min(PAUSE_MAX_MS, 2 ** attempt));
    const now = appended.outcome === 'conflict' ? await fromLeader() : null;
    if (now === null || isDoubtful(appended) || now.sequence === ledger.sequence) {
      settleRefused(refused);
      for (const { settle } of accepted) settle(appended);
      return null;
    }
    ledger = now;
    isCurrent = true;
  }
  throw new Unavailable('event-log', new Error(`${TRIES_MAX} conflicts on a ledger`));
}

/** Whether an answer was lost, so that what it was to may still come to the log. */
export function isDoubtful(appended: Appended): boolean {
  return appended.outcome === 'conflict' && appended.isDoubtful === true;
}

type Planned = {
  accepted: Entry[];
  refused: { entry: Entry; rejected: Rejected }[];
  /** Those who would give back what is not held: what they were decided on is out of date. */
  impossible: Entry[];
  /** The sessions', then the ledger's; none where nobody is accepted. */
  changes: Change[];
  /** The ledger after all that are accepted. */
  state: LedgerState;
};

/** What the ledger says to each of the group, one after the other, as it stands. */
function plan(
  { now }: Desk,
  organizationId: string,
  group: readonly Entry[],
  { state: before, sequence }: Loaded<'ledger'>,
): Planned {
  const aggregate = { kind: 'ledger', organizationId } as const;
  const state = before ?? emptyLedger;
  const planned: Planned = { accepted: [], refused: [], impossible: [], changes: [], state };
  const lines: Change['events'][number][] = [];
  for (const entry of group) {
    const { moves, cause, changes } = entry.posting;
    const decided = decideAll(moves, planned.state);
    if (isRejected(decided)) {
      planned.refused.push({ entry, rejected: decided });
      continue;
    }
    const after = decided.reduce(evolveLedger, planned.state);
    if (Math.min(...Object.values(after)) < 0) {
      planned.impossible.push(entry);
      continue;
    }
    const loaded = { state: planned.state, sequence };
    lines.push(...toChange({ aggregate, events: decided }, loaded, now(), cause).events);
    planned.state = after;
    planned.changes.push(...changes);
    planned.accepted.push(entry);
  }
  if (lines.length > 0)
    planned.changes.push({ aggregate, expectedSequence: sequence, events: lines });
  return planned;
}

function decideAll(moves: readonly LedgerCommand[], before: LedgerState) {
  let state = before;
  const events = [];
  for (const move of moves) {
    const decided = decideLedger(move, state);
    if (isRejected(decided)) return decided;
    state = decided.reduce(evolveLedger, state);
    events.push(...decided);
  }
  return events;
}

function settleRefused(refused: Planned['refused']): void {
  for (const { entry, rejected } of refused) entry.settle(rejected);
}

/** Gives each the sequences of its own changes: they stand first, in the order of the group. */
function settleAccepted(accepted: readonly Entry[], sequences: readonly number[]): void {
  let from = 0;
  for (const { posting, settle } of accepted) {
    const count = posting.changes.reduce((sum, { events }) => sum + events.length, 0);
    settle({ outcome: 'appended', sequences: sequences.slice(from, from + count) });
    from += count;
  }
}
