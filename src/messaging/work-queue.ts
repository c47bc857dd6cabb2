import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/errors.ts';
import { doubling } from '#src/async/retry.ts';
import { sleep } from '#src/async/sleep.ts';

/** One message of a work queue, held by one consumer until it is acknowledged or its lease ends. */
export type Delivery<Item> = {
  item: Item;
  /** 1 for the first delivery of this item. */
  deliveries: number;
  /** Acknowledges the item; resolves when the queue has stored that. */
  ack(): Promise<void>;
  /** Returns the item: deliver it again after this many milliseconds. */
  retryAfter(delayMs: number): void;
  /** Restarts the lease while the item is still being handled. */
  extendLease(): void;
  /** Gives the item up: it becomes a dead letter with this reason, listed by `bss parked`. */
  deadLetter(reason: string): void;
};

/**
 * Port: a durable work queue. Each item is held by one consumer at a time; an unacknowledged item
 * is delivered again.
 */
export type WorkQueue<Item> = {
  /**
   * The next item, or null if none arrived within `waitMs` or the signal aborted.
   * @throws Unavailable('event-log')
   */
  next(waitMs: number, signal: AbortSignal): Promise<Delivery<Item> | null>;
  /** Number of items that no consumer has taken yet. */
  pending(): Promise<number>;
};

/**
 * Port: opens the named work queue over the events of some subjects. A new queue starts with the
 * oldest event. Adapters: jetstream/jetstream-work-queue.ts, work-queue.memory.ts.
 * @throws Unavailable('event-log')
 */
export type OpenWorkQueue = (
  name: string,
  subjects: readonly string[],
) => Promise<WorkQueue<RecordedEvent>>;

/** How a consumer handles the items of a queue. */
export type ConsumeOptions<Item> = {
  signal: AbortSignal;
  /** Handles one item; if it throws, the item is delivered again. Must be idempotent. */
  handle: (item: Item) => Promise<void>;
  /** After this many failed deliveries the item becomes a dead letter. */
  deliveriesMax: number;
  onFailure: (error: unknown, item: Item, fate: 'retried' | 'parked') => void;
};

/** One pull waits this long; then the next one begins. */
const PULL_MS = 30_000;
/** Pause before a retry: 100 ms, doubled by each delivery, 10 s at most. */
const retryMs = doubling(100, 10_000);
/** Pause while the queue is unavailable. */
const AWAY_MS = 250;

/** Pulls, handles and acknowledges one item at a time, until the signal aborts. Never throws. */
export async function consume<Item>(
  workQueue: WorkQueue<Item>,
  options: ConsumeOptions<Item>,
): Promise<void> {
  while (!options.signal.aborted) {
    const delivery = await nextOrNull(workQueue, options.signal);
    if (delivery !== null) await handleOne(delivery, options);
  }
}

async function nextOrNull<Item>(
  workQueue: WorkQueue<Item>,
  signal: AbortSignal,
): Promise<Delivery<Item> | null> {
  try {
    return await workQueue.next(PULL_MS, signal);
  } catch {
    // The queue is unavailable. Its connection reconnects by itself, and no item is lost meanwhile.
    await sleep(AWAY_MS, signal);
    return null;
  }
}

async function handleOne<Item>(
  delivery: Delivery<Item>,
  { handle, deliveriesMax, onFailure }: ConsumeOptions<Item>,
): Promise<void> {
  const { item, deliveries } = delivery;
  try {
    await handle(item);
    await delivery.ack();
  } catch (error) {
    // An unavailable dependency is not the item's fault: the item does not become a dead letter for
    // it.
    const isParked = deliveries >= deliveriesMax && !(error instanceof Unavailable);
    onFailure(error, item, isParked ? 'parked' : 'retried');
    if (isParked) delivery.deadLetter(String(error));
    else delivery.retryAfter(retryMs(deliveries));
  }
}
