import { setTimeout as pause } from 'node:timers/promises';
import type { Cause } from '#events/envelope.ts';
import type { Aggregates, RefOf } from '#events/events.ts';
import { filterOf, type AggregateKind, type AggregateRef } from '#events/subjects.ts';
import { isRejected, Unavailable, type Rejected } from '#src/errors.ts';
import type { LedgerCommand } from '#src/domain/organization/ledger.ts';
import type { Appended, Change, EventLog } from '#src/event-store/event-store.ts';
import { load, type Loaded } from '#src/event-store/load-state.ts';
import { isDoubtful, openLedgers, type Ledgers } from './ledger-queue.ts';
import type { Recent } from '#src/event-store/state-cache.ts';
import { toChange, type Intent } from './to-change.ts';

/**
 * Where commands are decided: the log, and the clock that dates their events (ms since the epoch).
 */
export type Desk = {
  log: EventLog;
  now: () => number;
  /** Where this process's moves of each ledger stand in line; without it each is on its own. */
  ledgers?: Ledgers;
  /** What it has seen of the log lately, to decide on; without it the log is read each time. */
  recent?: Recent;
};

/** The desk of a process that decides many commands: those of one ledger stand in line there. */
export function openDesk(log: EventLog, now: () => number, recent: Recent): Desk {
  return { log, now, recent, ledgers: openLedgers({ log, now, recent }) };
}

/** The aggregate after the command, and the sequence of its last event. */
export type Handled<Kind extends AggregateKind> = {
  state: Aggregates[Kind]['state'];
  sequence: number;
  /**
   * True where this call appended something; false: there was nothing to do, or it was done before.
   */
  isChanged: boolean;
};

/** Reads an aggregate for a decision; the sequence read is what the append will expect. */
export type Read = <Kind extends AggregateKind>(aggregate: RefOf<Kind>) => Promise<Loaded<Kind>>;

/** What a plan may read; the second attempt's reads are the leader's. */
export type Reads = {
  read: Read;
  /** Takes it that the aggregate is not there, without asking: the append finds out otherwise. */
  assumeNew: (aggregate: AggregateRef) => void;
  isFirst: boolean;
};

/** What is asked of a ledger beside an intent of a session; decided when its turn in line comes. */
export type LedgerIntent = { aggregate: RefOf<'ledger'>; moves: readonly LedgerCommand[] };

/**
 * Tries at one command before the caller is told to come back; conflicts are rare but in a
 * stampede.
 */
const ATTEMPTS_MAX = 40;
/** The longest pause between two tries; full jitter below it. */
const PAUSE_MAX_MS = 50;

/** Load → decide → append, for a command that concerns one aggregate. */
export async function handle<Kind extends AggregateKind>(
  desk: Desk,
  aggregate: RefOf<Kind>,
  decide: (state: Aggregates[Kind]['state'] | null) => Aggregates[Kind]['event'][] | Rejected,
  cause: Cause,
): Promise<Handled<Kind> | Rejected> {
  return transact<Kind>(desk, aggregate, cause, async ({ read }) => {
    const events = decide((await read<Kind>(aggregate)).state);
    return isRejected(events) ? events : [{ aggregate, events }];
  });
}

/**
 * Runs a plan against the aggregates as they stand and appends what it wants, all or nothing.
 * On a conflict everything is read anew, from the leader, and planned again. A refusal, or that
 * there is nothing to do, counts only on the leader's word: a replica may lag, and a report be lost
 * on it.
 * @param main the aggregate whose state after the command is the result
 * @throws Unavailable when the log does not answer, or the aggregates were too contended
 */
export async function transact<Kind extends AggregateKind>(
  desk: Desk,
  main: RefOf<Kind>,
  cause: Cause,
  plan: (reads: Reads) => Promise<(Intent | LedgerIntent)[] | Rejected>,
): Promise<Handled<Kind> | Rejected> {
  let isAlone = false;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    // What an answer was lost to may have come to the log after all, and late.
    if (isAlone && (await isStored(desk.log, main, cause)))
      return result(await load<Kind>(desk.log, main, { fromLeader: true }), main, false);
    const reads = openReads(desk, attempt === 1);
    // 1. decide on what is there
    const intents = await plan(reads);
    if (attempt === 1 && (isRejected(intents) || !intents.some(isWriting))) continue;
    if (isRejected(intents)) return intents;
    // 2. fold each event into the state it carries
    const changes = intents
      .filter(isRecording)
      .map((intent) => toChange(intent, reads.loaded(intent.aggregate), desk.now(), cause));
    if (changes.length === 0) return result(await reads.read<Kind>(main), main, false);
    // 3. append, all or nothing
    const asked = intents.find(isAsking);
    const appended = await append(desk, changes, asked, { reads, cause, isAlone });
    if (isRejected(appended)) {
      if (attempt === 1) continue;
      return appended;
    }
    if (appended.outcome === 'appended') {
      remember(desk, changes, appended.sequences);
      return done<Kind>(main, changes, appended.sequences);
    }
    for (const { aggregate } of changes) desk.recent?.forget(aggregate);
    if (appended.outcome === 'repeated')
      return result(await load<Kind>(desk.log, main, { fromLeader: true }), main, false);
    // 4. somebody was faster: once more, with what is there now
    isAlone ||= isDoubtful(appended);
    await pause(Math.random() * Math.min(PAUSE_MAX_MS, 2 ** attempt));
  }
  throw new Unavailable('event-log', new Error(`${ATTEMPTS_MAX} conflicts on ${filterOf(main)}`));
}

async function isStored<Kind extends AggregateKind>(
  log: EventLog,
  main: RefOf<Kind>,
  { commandId }: Cause,
): Promise<boolean> {
  for await (const event of log.history<Kind>(main))
    if (event.cause.commandId === commandId) return true;
  return false;
}

function isRecording(intent: Intent | LedgerIntent): intent is Intent {
  return 'events' in intent && intent.events.length > 0;
}

function isAsking(intent: Intent | LedgerIntent): intent is LedgerIntent {
  return 'moves' in intent;
}

function isWriting(intent: Intent | LedgerIntent): boolean {
  return isRecording(intent) || isAsking(intent);
}

type Attempt = { reads: ReturnType<typeof openReads>; cause: Cause; isAlone: boolean };

/** Straight to the log; what asks something of a ledger by way of its line. */
async function append(
  desk: Desk,
  changes: readonly Change[],
  asked: LedgerIntent | undefined,
  { reads, cause, isAlone }: Attempt,
): Promise<Appended | Rejected> {
  if (asked === undefined) return desk.log.append(changes);
  const { aggregate, moves } = asked;
  const { organizationId } = aggregate;
  const ledger = reads.known<'ledger'>(aggregate);
  const ledgers = desk.ledgers ?? openLedgers(desk);
  return ledgers.post({ organizationId, changes, moves, cause, ledger, isAlone });
}

/** The reads of one attempt, each aggregate once; for the first what is remembered will do. */
function openReads({ log, recent }: Desk, isFirst: boolean) {
  const reads = new Map<string, Loaded<AggregateKind>>();
  function known<Kind extends AggregateKind>(aggregate: RefOf<Kind>): Loaded<Kind> | null {
    return (reads.get(filterOf(aggregate)) as Loaded<Kind> | undefined) ?? null;
  }
  const read: Read = async <Kind extends AggregateKind>(aggregate: RefOf<Kind>) => {
    const before = known<Kind>(aggregate);
    if (before !== null) return before;
    const remembered = isFirst ? recent?.of<Kind>(aggregate) : undefined;
    const loaded = remembered ?? (await load<Kind>(log, aggregate, { fromLeader: !isFirst }));
    reads.set(filterOf(aggregate), loaded);
    return loaded;
  };
  function assumeNew(aggregate: AggregateRef): void {
    reads.set(filterOf(aggregate), { state: null, sequence: 0 });
  }
  function loaded(aggregate: AggregateRef): Loaded<AggregateKind> {
    const before = reads.get(filterOf(aggregate));
    if (before === undefined)
      throw new Error(`decided on ${filterOf(aggregate)} without reading it`);
    return before;
  }
  return { read, assumeNew, isFirst, loaded, known };
}

function remember(
  { recent }: Desk,
  changes: readonly Change[],
  sequences: readonly number[],
): void {
  let count = 0;
  for (const { aggregate, events } of changes) {
    count += events.length;
    const state = events.at(-1)?.state as Loaded<AggregateKind>['state'];
    recent?.remember(aggregate, { state, sequence: sequences[count - 1] ?? 0 });
  }
}

function done<Kind extends AggregateKind>(
  main: RefOf<Kind>,
  changes: readonly Change[],
  sequences: readonly number[],
): Handled<Kind> {
  const key = filterOf(main);
  const events = changes.flatMap((change) => change.events);
  const index = events.findLastIndex((event) => filterOf(event.aggregate) === key);
  const state = events[index]?.state as Aggregates[Kind]['state'];
  return { state, sequence: sequences[index] ?? 0, isChanged: true };
}

function result<Kind extends AggregateKind>(
  { state, sequence }: Loaded<Kind>,
  main: RefOf<Kind>,
  isChanged: boolean,
): Handled<Kind> {
  if (state === null) throw new Error(`nothing decided on ${filterOf(main)}, which does not exist`);
  return { state, sequence, isChanged };
}
