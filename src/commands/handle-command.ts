import type { EventMetadata } from '#events/envelope.ts';
import type { Aggregates, RefOf } from '#events/events.ts';
import { streamFilter, type AggregateKind, type AggregateRef } from '#events/subjects.ts';
import { isRejection, Unavailable, type Rejection } from '#src/kernel/errors.ts';
import { again, againAtOnce, fullJitter, retry } from '#src/kernel/async/retry.ts';
import type { LedgerCommand } from '#src/kernel/domain/organization/ledger.ts';
import type { StreamAppend, EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState, type Loaded } from '#src/kernel/event-store/load-state.ts';
import { isOutcomeUnknown, createLedgerQueues, type LedgerQueues } from './ledger-queue.ts';
import type { StateCache } from '#src/kernel/event-store/state-cache.ts';
import { toStreamAppend, type Decision } from './to-stream-append.ts';

/**
 * What a command handler needs: the event store, and the clock that dates its events (ms since the
 * epoch).
 */
export type CommandContext = {
  eventStore: EventStore;
  now: () => number;
  /** The queues through which this process changes ledgers. */
  ledgerQueues: LedgerQueues;
  /**
   * The newest states this process has seen, to decide on; without it every command reads the event
   * store.
   */
  stateCache?: StateCache;
  /**
   * The command was handled before, without an answer of the event store: what it decided then may
   * be stored, and is its result. Only with the metadata of that time. Absent: no.
   */
  isRepeated?: boolean;
};

/**
 * The command context of a process: one for all its commands, so that those of one organization
 * share the appends to its ledger.
 */
export function createCommandContext(
  eventStore: EventStore,
  now: () => number,
  stateCache?: StateCache,
): CommandContext {
  const shared = stateCache === undefined ? { eventStore, now } : { eventStore, now, stateCache };
  return { ...shared, ledgerQueues: createLedgerQueues(shared) };
}

/** The aggregate after the command, and the sequence of its last event. */
export type CommandResult<Kind extends AggregateKind> = {
  state: Aggregates[Kind]['state'];
  sequence: number;
  /**
   * True if this call appended events. False if there was nothing to do, or if the event store
   * already held this command's events.
   */
  isChanged: boolean;
  /** The id of the aggregate's last event that this call appended; null if it appended none. */
  eventId: string | null;
};

/** Reads an aggregate for a decision; the sequence read is what the append will expect. */
export type Read = <Kind extends AggregateKind>(aggregate: RefOf<Kind>) => Promise<Loaded<Kind>>;

/**
 * The reads that a plan may make. The attempt decides whether a cache, a replica or the leader
 * answers, or whether the read is left out; the append's checks hold in any case.
 */
export type Reads = {
  read: Read;
  /** Reads an aggregate whose id the caller has just generated, so that it cannot exist yet. */
  readNew: Read;
  /** Reads an aggregate that other processes change, too: never from this one's memory. */
  readCurrent: Read;
  /** Starts to read a ledger that the decision will change, concurrently with the other reads. */
  prefetchLedger: (aggregate: RefOf<'ledger'>) => Promise<void>;
};

/**
 * Ledger commands that go with a session's decision; they are decided when the ledger queue gets to
 * them.
 */
export type LedgerDecision = { aggregate: RefOf<'ledger'>; commands: readonly LedgerCommand[] };

/**
 * Attempts at one command before the caller gets Unavailable. Conflicts are rare except when many
 * requests change one aggregate at once.
 */
const ATTEMPTS_MAX = 40;
/** The longest pause between two attempts; full jitter below it. */
const PAUSE_MAX_MS = 50;

/**
 * Load, decide, append: a command that changes one aggregate.
 * @param decide gets the state and the sequence of the aggregate's last event, null and 0 if there
 * is none
 */
export async function handleCommand<Kind extends AggregateKind>(
  context: CommandContext,
  aggregate: RefOf<Kind>,
  decide: (
    state: Aggregates[Kind]['state'] | null,
    sequence: number,
  ) => Aggregates[Kind]['event'][] | Rejection,
  metadata: EventMetadata,
): Promise<CommandResult<Kind> | Rejection> {
  return handleTransaction<Kind>(context, aggregate, metadata, async ({ read }) => {
    const { state, sequence } = await read<Kind>(aggregate);
    const events = decide(state, sequence);
    return isRejection(events) ? events : [{ aggregate, events }];
  });
}

/**
 * Runs a plan against the current aggregates and appends its changes, all or none. After a conflict
 * it reads everything again from the leader and plans again. A rejection, or a finding that no
 * change is needed, counts only if the leader confirms it: a replica may lag, and a report decided
 * on it could be dropped.
 * @param main the aggregate whose state after the command is the result
 * @throws Unavailable if the event store does not answer, or the aggregates are too contended
 */
export async function handleTransaction<Kind extends AggregateKind>(
  context: CommandContext,
  main: RefOf<Kind>,
  metadata: EventMetadata,
  plan: (reads: Reads) => Promise<(Decision | LedgerDecision)[] | Rejection>,
): Promise<CommandResult<Kind> | Rejection> {
  let mustAppendAlone = context.isRepeated === true;
  /** The result of an append whose answer was lost and that was stored after all; null: none. */
  async function storedLate(): Promise<CommandResult<Kind> | null> {
    const isLate = mustAppendAlone && (await isStored(context.eventStore, main, metadata));
    return isLate ? readResult(context, main) : null;
  }
  async function attempt(count: number) {
    const stored = await storedLate();
    if (stored !== null) return stored;
    const isFirst = count === 1;
    const reads = openReads(context, isFirst);
    const decisions = await plan(reads);
    // The append whose answer was lost may have been stored since, and have taken the last slot:
    // then it is itself the reason of this rejection.
    if (isRejection(decisions)) return isFirst ? againAtOnce : ((await storedLate()) ?? decisions);
    if (isFirst && !decisions.some(isWriting)) return againAtOnce;

    const changes = decisions
      .filter(isRecording)
      .map((one) => toStreamAppend(one, reads.loaded(one.aggregate), context.now(), metadata));
    if (changes.length === 0) return result(await reads.read<Kind>(main), main, false);

    const asked = decisions.find(isAsking);
    const appended =
      asked === undefined
        ? await context.eventStore.append(changes)
        : await context.ledgerQueues.submit({
            organizationId: asked.aggregate.organizationId,
            changes,
            commands: asked.commands,
            metadata,
            ledger: reads.known<'ledger'>(asked.aggregate),
            mustAppendAlone,
          });
    if (isRejection(appended)) return isFirst ? againAtOnce : ((await storedLate()) ?? appended);
    if (appended.outcome === 'appended') {
      remember(context, changes, appended.sequences);
      return done<Kind>(main, changes, appended.sequences);
    }
    for (const { aggregate } of changes) context.stateCache?.delete(aggregate);
    if (appended.outcome === 'duplicate') return readResult(context, main);
    mustAppendAlone ||= isOutcomeUnknown(appended);
    return again;
  }
  return retry(
    {
      attemptsMax: ATTEMPTS_MAX,
      pauseMs: fullJitter(PAUSE_MAX_MS),
      onExhausted: (attempts) =>
        new Unavailable('event-log', new Error(`${attempts} conflicts on ${streamFilter(main)}`)),
    },
    attempt,
  );
}

/** Reads the aggregate as an earlier attempt of the same command left it. */
async function readResult<Kind extends AggregateKind>(
  { eventStore }: CommandContext,
  main: RefOf<Kind>,
): Promise<CommandResult<Kind>> {
  return result(await loadState<Kind>(eventStore, main, { fromLeader: true }), main, false);
}

async function isStored<Kind extends AggregateKind>(
  eventStore: EventStore,
  main: RefOf<Kind>,
  { commandId }: EventMetadata,
): Promise<boolean> {
  for await (const event of eventStore.history<Kind>(main))
    if (event.metadata.commandId === commandId) return true;
  return false;
}

function isRecording(intent: Decision | LedgerDecision): intent is Decision {
  return 'events' in intent && intent.events.length > 0;
}

function isAsking(intent: Decision | LedgerDecision): intent is LedgerDecision {
  return 'commands' in intent;
}

function isWriting(intent: Decision | LedgerDecision): boolean {
  return isRecording(intent) || isAsking(intent);
}

/**
 * The reads of one attempt, each aggregate once. The first attempt may use the cache and replicas.
 */
function openReads(
  { eventStore, stateCache, ledgerQueues }: CommandContext,
  isFirstAttempt: boolean,
) {
  const reads = new Map<string, Loaded<AggregateKind>>();
  function known<Kind extends AggregateKind>(aggregate: RefOf<Kind>): Loaded<Kind> | null {
    return (reads.get(streamFilter(aggregate)) as Loaded<Kind> | undefined) ?? null;
  }
  async function load<Kind extends AggregateKind>(
    aggregate: RefOf<Kind>,
    { isNew = false, isCurrent = false } = {},
  ) {
    const before = known<Kind>(aggregate);
    if (before !== null) return before;
    const mayBeOld = isFirstAttempt && !isCurrent;
    const remembered = mayBeOld ? stateCache?.get<Kind>(aggregate) : undefined;
    const options = { fromLeader: !mayBeOld, isNew };
    const loaded = remembered ?? (await loadState<Kind>(eventStore, aggregate, options));
    reads.set(streamFilter(aggregate), loaded);
    return loaded;
  }
  const read: Read = (aggregate) => load(aggregate);
  const readCurrent: Read = (aggregate) => load(aggregate, { isCurrent: true });
  const readNew: Read = (aggregate) => {
    // Assume that the aggregate does not exist, without a read; the append fails if it does.
    if (isFirstAttempt) reads.set(streamFilter(aggregate), { state: null, sequence: 0 });
    return load(aggregate, { isNew: true });
  };
  async function prefetchLedger(ledger: RefOf<'ledger'>): Promise<void> {
    // A busy queue knows the ledger. Later attempts leave the read to the queue.
    if (isFirstAttempt && !ledgerQueues.isBusy(ledger.organizationId)) await read<'ledger'>(ledger);
  }
  function loaded(aggregate: AggregateRef): Loaded<AggregateKind> {
    const before = reads.get(streamFilter(aggregate));
    if (before === undefined)
      throw new Error(`decided on ${streamFilter(aggregate)} without reading it`);
    return before;
  }
  return { read, readNew, readCurrent, prefetchLedger, loaded, known };
}

function remember(
  { stateCache }: CommandContext,
  changes: readonly StreamAppend[],
  sequences: readonly number[],
): void {
  let count = 0;
  for (const { aggregate, events } of changes) {
    count += events.length;
    const state = events.at(-1)?.state as Loaded<AggregateKind>['state'];
    stateCache?.set(aggregate, { state, sequence: sequences[count - 1] ?? 0 });
  }
}

function done<Kind extends AggregateKind>(
  main: RefOf<Kind>,
  changes: readonly StreamAppend[],
  sequences: readonly number[],
): CommandResult<Kind> {
  const key = streamFilter(main);
  const events = changes.flatMap((change) => change.events);
  const index = events.findLastIndex((event) => streamFilter(event.aggregate) === key);
  const state = events[index]?.state as Aggregates[Kind]['state'];
  const eventId = events[index]?.id ?? null;
  return { state, sequence: sequences[index] ?? 0, isChanged: true, eventId };
}

function result<Kind extends AggregateKind>(
  { state, sequence }: Loaded<Kind>,
  main: RefOf<Kind>,
  isChanged: boolean,
): CommandResult<Kind> {
  if (state === null)
    throw new Error(`nothing decided on ${streamFilter(main)}, which does not exist`);
  return { state, sequence, isChanged, eventId: null };
}
