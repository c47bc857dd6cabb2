import type { EventMetadata } from '#events/envelope.ts';
import type { LedgerState } from '#events/ledger.ts';
import { streamFilter } from '#events/subjects.ts';
import { isRejection, Unavailable, type Rejection } from '#src/kernel/errors.ts';
import { again, againAtOnce, fullJitter, retry } from '#src/kernel/async/retry.ts';
import {
  decideLedger,
  emptyLedger,
  evolveLedger,
  type LedgerCommand,
} from '#src/kernel/domain/organization/ledger.ts';
import type {
  AppendResult,
  StreamAppend,
  EventStore,
} from '#src/kernel/event-store/event-store.ts';
import { loadState, type Loaded } from '#src/kernel/event-store/load-state.ts';
import type { StateCache } from '#src/kernel/event-store/state-cache.ts';
import { createAnnouncements } from './announcements.ts';
import { toStreamAppend } from './to-stream-append.ts';

/**
 * A command's changes to a session, and its commands to the organization's ledger. Both are
 * appended, or neither.
 */
export type LedgerRequest = {
  organizationId: string;
  /** The session's changes; one may hold several events. */
  changes: readonly StreamAppend[];
  commands: readonly LedgerCommand[];
  metadata: EventMetadata;
  /**
   * The ledger state the caller has already read, if any; used unless the queue knows a newer one.
   */
  ledger: Loaded<'ledger'> | null;
  /**
   * True after a lost answer. The event store recognizes a repeated append by one command only, so
   * this request must be appended alone.
   */
  mustAppendAlone: boolean;
};

/**
 * The sequences are those of the request's own changes. A rejection is by the ledger's current
 * state.
 */
type LedgerResult = AppendResult | Rejection;

/**
 * The ledger queues of one process, one for each organization. All changes of an organization's
 * ledger meet in one aggregate: the queue serializes them, and requests that arrive during an
 * append share the next one. Only commands of different processes can then conflict.
 */
export type LedgerQueues = {
  /** @throws Unavailable if the event store does not answer, or the ledger is too contended */
  submit(request: LedgerRequest): Promise<LedgerResult>;
  /** Whether the organization's queue has requests; if so, the caller need not read the ledger. */
  isBusy(organizationId: string): boolean;
  /**
   * Announces a request that is not decided yet. The organization's next append waits for it until
   * it is submitted to the result, or the result is disposed; for `ANNOUNCED_MS` at most.
   */
  announce(organizationId: string): LedgerQueues & Disposable;
};

/**
 * Requests of one append: each has some 4 events at most, and the event store takes 1,000 in one
 * append.
 */
const TOGETHER_MAX = 64;
/**
 * Requests that may wait in one queue: seconds of work. A request beyond that fails as Unavailable.
 */
const WAITING_MAX = 5_000;
/**
 * How long an append waits for requests that are announced. Of creates that arrive together the
 * first would otherwise be appended alone, and the others wait for its append, which takes longer
 * than the round trip to Redis that they are announced for.
 */
const ANNOUNCED_MS = 2;
/** Attempts to append one group, and the longest pause between two; full jitter below it. */
const ATTEMPTS_MAX = 100;
const PAUSE_MAX_MS = 20;

type LedgerContext = { eventStore: EventStore; now: () => number; stateCache?: StateCache };

type QueuedRequest = {
  request: LedgerRequest;
  sessions: readonly string[];
  mustAppendAlone: boolean;
  settle: (result: LedgerResult) => void;
  fail: (error: unknown) => void;
};

/** A queue exists only as long as it has requests. */
export function createLedgerQueues(context: LedgerContext): LedgerQueues {
  const queues = new Map<string, QueuedRequest[]>();
  const announcements = createAnnouncements(ANNOUNCED_MS);

  function submit(request: LedgerRequest): Promise<LedgerResult> {
    const { organizationId, changes, mustAppendAlone } = request;
    const { promise, resolve: settle, reject: fail } = Promise.withResolvers<LedgerResult>();
    const sessions = changes.map(({ aggregate }) => streamFilter(aggregate));
    const entry: QueuedRequest = { request, sessions, mustAppendAlone, settle, fail };
    const queue = queues.get(organizationId);
    if (queue === undefined) {
      const created = [entry];
      queues.set(organizationId, created);
      const othersHere = () => announcements.whenComplete(organizationId);
      const onEmpty = () => queues.delete(organizationId);
      void appendAll(context, organizationId, created, { othersHere, onEmpty });
    } else if (queue.length < WAITING_MAX) queue.push(entry);
    else fail(new Unavailable('event-log', new Error(`${WAITING_MAX} wait for a ledger`)));
    return promise;
  }
  const ledgerQueues: LedgerQueues = {
    submit,
    isBusy: (organizationId) => queues.has(organizationId),
    announce(organizationId) {
      const over = announcements.announce(organizationId);
      return {
        ...ledgerQueues,
        submit(request) {
          over();
          return submit(request);
        },
        [Symbol.dispose]: over,
      };
    },
  };
  return ledgerQueues;
}

/**
 * Appends group after group until the queue is empty. If the event store does not answer, all
 * requests of the queue fail.
 * @param othersHere waits for requests that are announced; null: none is
 * @param onEmpty removes the queue, synchronously once it is empty: a request that joined it later
 * would never be answered
 */
async function appendAll(
  context: LedgerContext,
  organizationId: string,
  queue: QueuedRequest[],
  { othersHere, onEmpty }: { othersHere: () => Promise<void> | null; onEmpty: () => void },
): Promise<void> {
  let known: Loaded<'ledger'> | null = null;
  while (queue.length > 0) {
    const waiting = othersHere();
    if (waiting !== null) await waiting;
    const group = takeGroup(queue);
    try {
      known = await settleGroup(context, organizationId, group, known);
      sendBack(queue, group);
    } catch (error) {
      known = null;
      const isOneAtFault = !(error instanceof Unavailable) && group.length > 1;
      // A bug in one command must not fail the others. Append each request alone to find the faulty
      // one.
      if (isOneAtFault)
        queue.unshift(...group.map((entry) => ({ ...entry, mustAppendAlone: true })));
      else if (error instanceof Unavailable) failAll([...group, ...queue.splice(0)], error);
      else failAll(group, error);
    }
  }
  onEmpty();
}

/**
 * Takes the next requests that fit in one append, in their order: at most one per session. A
 * request marked `mustAppendAlone` goes by itself.
 */
function takeGroup(queue: QueuedRequest[]): QueuedRequest[] {
  const sessions = new Set<string>();
  let count = 0;
  for (const entry of queue) {
    const isSecond = entry.sessions.some((session) => sessions.has(session));
    if (count > 0 && (count === TOGETHER_MAX || isSecond || entry.mustAppendAlone)) break;
    for (const session of entry.sessions) sessions.add(session);
    count += 1;
    if (entry.mustAppendAlone) break;
  }
  return queue.splice(0, count);
}

/**
 * Queued requests that were decided on a session which the group has just changed must decide
 * again.
 */
function sendBack(queue: QueuedRequest[], group: readonly QueuedRequest[]): void {
  const moved = new Set(group.flatMap(({ sessions }) => sessions));
  const isStale = ({ sessions }: QueuedRequest) => sessions.some((session) => moved.has(session));
  for (const { settle } of queue.filter(isStale)) settle({ outcome: 'conflict' });
  queue.splice(0, queue.length, ...queue.filter((entry) => !isStale(entry)));
}

function failAll(entries: readonly QueuedRequest[], error: unknown): void {
  for (const { fail } of entries) fail(error);
}

/**
 * Decides and appends one group. If another process changed the ledger meanwhile, the same group is
 * tried again. If a session was changed, all requests go back to their commands, to be decided
 * again.
 * @returns the ledger afterwards; null if it is not known
 * @throws Unavailable
 */
async function settleGroup(
  context: LedgerContext,
  organizationId: string,
  entries: readonly QueuedRequest[],
  known: Loaded<'ledger'> | null,
): Promise<Loaded<'ledger'> | null> {
  const aggregate = { kind: 'ledger', organizationId } as const;
  const fromLeader = () => loadState<'ledger'>(context.eventStore, aggregate, { fromLeader: true });
  const remembered =
    known ?? entries[0]?.request.ledger ?? context.stateCache?.get<'ledger'>(aggregate);
  let ledger = remembered ?? (await loadState<'ledger'>(context.eventStore, aggregate));
  let isCurrent = false;
  let group = entries;
  let conflicting: Planned | null = null;

  async function attempt(count: number) {
    if (conflicting !== null) {
      const now = await fromLeader();
      // The ledger is unchanged, so a session has changed.
      if (now.sequence === ledger.sequence) return settleAll(conflicting, { outcome: 'conflict' });
      ledger = now;
      isCurrent = true;
    }
    let planned = plan(context, organizationId, group, ledger);
    if (planned.refused.length + planned.impossible.length > 0 && !isCurrent) {
      // A rejection counts only if a read of the leader that began after the request confirms it.
      ledger = await fromLeader();
      isCurrent = true;
      planned = plan(context, organizationId, group, ledger);
    }
    const { accepted, refused, impossible, changes, state } = planned;
    // Another process changed these sessions, and the ledger with them.
    for (const { settle } of impossible) settle({ outcome: 'conflict' });
    group = group.filter((entry) => !impossible.includes(entry));
    if (accepted.length === 0) {
      settleRefused(refused);
      return ledger;
    }
    const appended = await context.eventStore.append(changes);
    if (appended.outcome === 'appended') {
      settleRefused(refused);
      settleAccepted(accepted, appended.sequences);
      const after = { state, sequence: appended.sequences.at(-1) ?? 0 };
      context.stateCache?.set(aggregate, after);
      return after;
    }
    if (appended.outcome === 'duplicate' || isOutcomeUnknown(appended))
      return settleAll(planned, appended);
    conflicting = planned;
    return count === 1 ? againAtOnce : again;
  }
  return retry(
    {
      attemptsMax: ATTEMPTS_MAX,
      pauseMs: fullJitter(PAUSE_MAX_MS),
      onExhausted: (attempts) =>
        new Unavailable('event-log', new Error(`${attempts} conflicts on a ledger`)),
    },
    attempt,
  );
}

/** Answers what was refused, and all others alike. @returns null: the ledger is not known */
function settleAll({ accepted, refused }: Planned, result: LedgerResult): null {
  settleRefused(refused);
  for (const { settle } of accepted) settle(result);
  return null;
}

/** Whether an answer was lost, so that the event store may still store that append later. */
export function isOutcomeUnknown(appended: AppendResult): boolean {
  return appended.outcome === 'conflict' && appended.outcomeUnknown === true;
}

type Planned = {
  accepted: QueuedRequest[];
  refused: { entry: QueuedRequest; rejection: Rejection }[];
  /**
   * Requests that would release what is not held: the state that they were decided on is outdated.
   */
  impossible: QueuedRequest[];
  /** The sessions' changes, then the ledger's; empty if no request is accepted. */
  changes: StreamAppend[];
  /** The ledger after all accepted requests. */
  state: LedgerState;
};

/**
 * Decides the group's ledger commands one after the other, starting from the ledger's current
 * state.
 */
function plan(
  { now }: LedgerContext,
  organizationId: string,
  group: readonly QueuedRequest[],
  { state: before, sequence }: Loaded<'ledger'>,
): Planned {
  const aggregate = { kind: 'ledger', organizationId } as const;
  const state = before ?? emptyLedger;
  const planned: Planned = { accepted: [], refused: [], impossible: [], changes: [], state };
  const ledgerEvents: StreamAppend['events'][number][] = [];
  for (const entry of group) {
    const { commands, metadata, changes } = entry.request;
    const decided = decideAll(commands, planned.state);
    if (isRejection(decided)) {
      planned.refused.push({ entry, rejection: decided });
      continue;
    }
    const after = decided.reduce(evolveLedger, planned.state);
    const { egress: _, ...amounts } = after;
    if (Math.min(...Object.values(amounts)) < 0) {
      planned.impossible.push(entry);
      continue;
    }
    const loaded = { state: planned.state, sequence };
    const decision = { aggregate, events: decided };
    ledgerEvents.push(...toStreamAppend(decision, loaded, now(), metadata).events);
    planned.state = after;
    planned.changes.push(...changes);
    planned.accepted.push(entry);
  }
  if (ledgerEvents.length > 0)
    planned.changes.push({ aggregate, expectedSequence: sequence, events: ledgerEvents });
  return planned;
}

function decideAll(commands: readonly LedgerCommand[], before: LedgerState) {
  let state = before;
  const events = [];
  for (const command of commands) {
    const decided = decideLedger(command, state);
    if (isRejection(decided)) return decided;
    state = decided.reduce(evolveLedger, state);
    events.push(...decided);
  }
  return events;
}

function settleRefused(refused: Planned['refused']): void {
  for (const { entry, rejection } of refused) entry.settle(rejection);
}

/**
 * Gives each request the sequences of its own changes; these come first, in the order of the group.
 */
function settleAccepted(accepted: readonly QueuedRequest[], sequences: readonly number[]): void {
  let from = 0;
  for (const { request, settle } of accepted) {
    const count = request.changes.reduce((sum, { events }) => sum + events.length, 0);
    settle({ outcome: 'appended', sequences: sequences.slice(from, from + count) });
    from += count;
  }
}
