import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { commandsOf } from '#src/kernel/event-store/batch.ts';
import type {
  AppendResult,
  EventStore,
  StreamAppend,
} from '#src/kernel/event-store/event-store.ts';
import { pause, type Network, type Process, type World } from './world.ts';

/** Events that a replica may lack. */
const STALE_MAX = 30;
/** The most that a stored event, or an append in transit, is late. */
const LATE_MS = 4_000;
/** How long an append waits for its answer, and how often a cut-off reader looks again. */
const ANSWER_MS = 2_000;
const LOOK_AGAIN_MS = 200;

/**
 * The event store as one process reaches it: with the outcomes that the port allows and the adapter
 * of JetStream has. Answers are lost, appends are stored late, replicas lag, events arrive late.
 */
export function eventStoreOver(
  world: World,
  process: Process,
  network: Network,
  stored: EventStore,
): EventStore {
  const { call, atServer, random, rates } = network;

  /** What a replica has, which is behind by some events. */
  async function fromReplica(aggregate: RecordedEvent['aggregate']) {
    const upTo = (await stored.lastSequence()) - random.integer(1, STALE_MAX);
    return stored.readLastUpTo(aggregate, upTo);
  }
  async function* readAll<Item>(
    what: string,
    read: () => AsyncIterable<Item>,
  ): AsyncGenerator<Item, void, void> {
    yield* await call('event-log', what, () => Array.fromAsync(read()));
  }
  return {
    append: createAppend(world, process, network, stored),
    async readLast(aggregate, options) {
      type Last = RecordedOf<typeof aggregate.kind> | null;
      const isStale = options?.fromLeader !== true && random.chance(rates.stale);
      return call('event-log', 'read', async () =>
        isStale
          ? ((await fromReplica(aggregate)) as Last)
          : await stored.readLast(aggregate, options),
      );
    },
    readLastUpTo: (aggregate, sequence) =>
      call('event-log', 'read', () => stored.readLastUpTo(aggregate, sequence)),
    history: (aggregate) => readAll('history', () => stored.history(aggregate)),
    read: (options) => readAll('read', () => stored.read(options)),
    lastSequence: () => call('event-log', 'last sequence', () => stored.lastSequence()),
    sequenceBefore: (at) => call('event-log', 'sequence', () => stored.sequenceBefore(at)),
    info: () => call('event-log', 'info', () => stored.info()),
    async *subscribe(options) {
      const signal = AbortSignal.any([options.signal, process.died.signal]);
      const { onReceiving } = options;
      const heard = (is: boolean) => {
        if (!process.cutOff.has('event-log')) onReceiving?.(is);
      };
      const given = { ...options, signal, ...(onReceiving && { onReceiving: heard }) };
      const subscription = stored.subscribe(given);
      const batches = subscription[Symbol.asyncIterator]();
      while (!options.signal.aborted) {
        const next = await atServer(() => batches.next());
        if (next.done === true) return;
        await pause(random.chance(rates.late) ? random.integer(100, LATE_MS) : network.latencyMs());
        while (process.cutOff.has('event-log') && !options.signal.aborted)
          await pause(LOOK_AGAIN_MS);
        if (!options.signal.aborted) yield next.value;
      }
      // What the server's side has open ends with the subscription.
      await atServer(() => batches.return?.());
    },
  };
}

/**
 * Appends as src/kernel/event-store/jetstream/append.ts does: after a lost answer it looks what has
 * become of the append, and says that the outcome is unknown where it may still be stored.
 */
function createAppend(
  world: World,
  process: Process,
  network: Network,
  stored: EventStore,
): EventStore['append'] {
  const { reach, atServer, mayCrash, random, rates } = network;
  const unanswered = new Set<string>();

  async function isStored({ aggregate, expectedSequence }: StreamAppend, commandId: string) {
    const last = await stored.readLast(aggregate, { fromLeader: true });
    if (last?.metadata.commandId === commandId) return true;
    if (!unanswered.has(commandId)) return false;
    for await (const event of stored.history(aggregate))
      if (event.sequence > expectedSequence && event.metadata.commandId === commandId) return true;
    return false;
  }

  /** What became of a publish whose answer is lost. */
  async function lose(changes: readonly StreamAppend[], what: string): Promise<AppendResult> {
    const { first, commandId, commandIds } = commandsOf(changes);
    for (const id of commandIds) unanswered.add(id);
    const isLate = random.chance(rates.storedLate);
    const isNever = !isLate && random.chance(0.3);
    const lateMs = isLate ? random.integer(ANSWER_MS, LATE_MS) : 0;
    if (!isNever)
      void atServer(async () => {
        if (isLate) await pause(lateMs);
        const { outcome } = await stored.append(changes);
        world.tell(process.name, `${what}: its answer is lost; ${lateMs} ms later ${outcome}`);
      });
    await mayCrash(what, 'after');
    await pause(ANSWER_MS);
    await reach('event-log', 'looking for a lost append');
    if (await atServer(() => isStored(first, commandId))) return { outcome: 'duplicate' };
    return { outcome: 'conflict', outcomeUnknown: true };
  }

  return async function append(changes) {
    const { first, commandId, commandIds } = commandsOf(changes);
    const types = changes.flatMap(({ events }) => events.map(({ type }) => type));
    const what = `append ${types.join(', ')}`;
    await reach('event-log', what);
    if (random.chance(rates.answerLost)) return lose(changes, what);
    const appended = await atServer(() => stored.append(changes));
    await mayCrash(what, 'after');
    if (random.chance(0.3)) await pause(network.latencyMs());
    if (appended.outcome === 'appended') {
      for (const id of commandIds) unanswered.delete(id);
      return appended;
    }
    if (process.cutOff.has('event-log')) throw new Unavailable('event-log');
    if (await atServer(() => isStored(first, commandId))) return { outcome: 'duplicate' };
    return unanswered.has(commandId)
      ? { outcome: 'conflict', outcomeUnknown: true }
      : { outcome: 'conflict' };
  };
}
