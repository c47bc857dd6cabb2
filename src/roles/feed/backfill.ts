import type { RecordedEvent } from '#events/events.ts';
import type { FairSlots } from '#src/kernel/async/fair-slots.ts';
import type { EventStore, UnreadableEvent } from '#src/kernel/event-store/event-store.ts';
import { subjectsOf } from './subscription.ts';
import type { Channel } from './channel.ts';
import type { Subscriber } from './subscriber.ts';
import { eventFrame } from './sse-frames.ts';

/** Events read at once for one subscriber. */
const BATCH_MAX = 100;
/** Batches after which a read gives its slot to one that waits; to begin again takes some 4 ms. */
const TURN_BATCHES = 10;
/** A subscriber that takes no bytes for this long gives up its read slot until it takes some. */
const PATIENCE_MS = 250;
/** A subscriber that takes no bytes for this long is cut off. */
export const STALL_MS = 30_000;

export type BackfillDependencies = {
  eventStore: EventStore;
  /** Limits how many subscribers read a backlog at once, of all organizations and of one. */
  readSlots: FairSlots;
  /** @throws UnknownEvent, which ends the stream */
  onUnreadable: (poison: UnreadableEvent) => void;
};

/**
 * Sends the subscriber the stored events after its cursor, then hands it over to the channel. The
 * channel has kept every event that was delivered meanwhile, so none is missed or sent twice.
 * @throws Unavailable; UnknownEvent behind the events before one of a newer version
 */
export async function backfill(
  dependencies: BackfillDependencies,
  channel: Channel,
  subscriber: Subscriber,
): Promise<void> {
  const subjects = subjectsOf(subscriber.subscription);
  while (!subscriber.signal.aborted) {
    if (channel.goLive(subscriber)) return;
    // The channel has kept all events after this one.
    const end = channel.since();
    while (subscriber.cursor() < end && !subscriber.signal.aborted) {
      await readUpTo(dependencies, subjects, subscriber, end);
      if (!(await subscriber.drained(STALL_MS))) subscriber.end('slow_reader');
    }
  }
}

/**
 * Reads and sends events up to `end`, and moves the cursor there; returns early if the subscriber
 * is slow, or has had its turn while others wait.
 */
async function readUpTo(
  { eventStore, readSlots, onUnreadable }: BackfillDependencies,
  subjects: readonly string[],
  subscriber: Subscriber,
  end: number,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  stack.use(await readSlots.acquire(subscriber.subscription.organizationId, subscriber.signal));
  const batches = eventStore.read({
    subjects,
    after: subscriber.cursor(),
    upTo: end,
    includesArchive: true,
    signal: subscriber.signal,
    batchMax: BATCH_MAX,
    onUnreadable,
  });
  let turns = 0;
  for await (const batch of batches) {
    if (!(await sendAll(subscriber, batch))) return;
    if (!(await subscriber.drained(PATIENCE_MS))) return;
    turns += 1;
    if (turns >= TURN_BATCHES && readSlots.isWanted()) return;
  }
  if (!subscriber.signal.aborted) subscriber.advance(end);
}

/** False if the subscriber is slow or has ended: some events were not sent. */
async function sendAll(subscriber: Subscriber, batch: readonly RecordedEvent[]): Promise<boolean> {
  const entries = batch.map((event) => ({
    sequence: event.sequence,
    event,
    frame: eventFrame(event),
  }));
  const last = entries.at(-1)?.sequence ?? 0;
  for (;;) {
    subscriber.send(entries);
    if (subscriber.signal.aborted || subscriber.cursor() >= last) return !subscriber.signal.aborted;
    if (!(await subscriber.drained(PATIENCE_MS))) return false;
  }
}
