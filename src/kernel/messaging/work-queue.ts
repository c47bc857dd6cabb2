import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { doubling } from '#src/kernel/async/retry.ts';
import { sleep } from '#src/kernel/async/sleep.ts';

/** One message of a work queue, held by one consumer until it is acknowledged or its lease ends. */
export type Delivery<Item> = {
  item: Item;
  /** 1 for the first delivery of this item. */
  deliveries: number;
  /** Whether an operator has asked for it and waits for the result; absent: no. */
  isRetry?: boolean;
  /** Acknowledges the item; resolves when the queue has stored that. */
  ack(): Promise<void>;
  /** Returns the item: deliver it again after this many milliseconds. */
  retryAfter(delayMs: number): void;
  /** Restarts the lease while the item is still being handled. */
  extendLease(): void;
  /** Gives the item up: it becomes a dead letter with this reason, listed by `bss dead-letters`. */
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
  options?: DeliveryBound,
) => Promise<WorkQueue<RecordedEvent>>;

export type DeliveryBound = {
  /**
   * Whether the eleventh delivery of an item makes it a dead letter; default: true. False where
   * consumers give items back that they have no room for: only they know which deliveries failed,
   * and they give an item up.
   */
  isBounded?: boolean;
};

/** How a consumer handles the items of a queue. */
export type ConsumeOptions<Item> = {
  signal: AbortSignal;
  /** Handles one item; if it throws, the item is delivered again. Must be idempotent. */
  handle: (item: Item) => Promise<void>;
  /** After this many failed deliveries the item becomes a dead letter. */
  deliveriesMax: number;
  onFailure: (error: unknown, item: Item, fate: 'retried' | 'dead letter') => void;
  /** The most items that are taken and not yet handled; default: one. */
  concurrency?: number;
  /**
   * Items with the same key are handled one after the other, in the order of their delivery. A
   * retried item may be overtaken, and so may one that another consumer of the queue holds. By
   * default no two items share a key.
   */
  keyOf?: (item: Item) => string;
};

/** One pull waits this long; then the next one begins. */
const PULL_MS = 30_000;
/** A pull that is answered this soon was for an item that had been waiting: there is a burst. */
const BURST_WITHIN_MS = 5;
/** Pause before the pull after an item that came alone: requests under way go first. */
const PAUSE_MS = 10;
/** So long a further pull waits: a burst is over when it finds nothing. */
const BURST_PULL_MS = 1_000;
/** Pulls that are open at once in a burst: 1 was measured at 860 items a second, 16 at 1,800. */
const PULLS_MAX = 16;
/** Pause before a retry: 100 ms, doubled by each delivery, 10 s at most. */
const retryMs = doubling(100, 10_000);
/** Pause while the queue is unavailable. */
const AWAY_MS = 250;

/**
 * Pulls, handles and acknowledges items until the signal aborts, and then finishes those it has
 * taken. Never throws. One request for an item is open all the time, but for 10 ms after an item
 * that came alone. In a burst there are more, as the answer to one request takes longer than the
 * handling of an item.
 */
export async function consume<Item>(
  workQueue: WorkQueue<Item>,
  options: ConsumeOptions<Item>,
): Promise<void> {
  const { signal, concurrency = 1 } = options;
  const slots = createSlots(concurrency);
  const lanes = createLanes();
  const burst = new Set<Promise<void>>();

  async function pull(isBurst: boolean): Promise<void> {
    while (!signal.aborted) {
      await slots.take();
      const waitMs = isBurst ? BURST_PULL_MS : PULL_MS;
      const askedAt = performance.now();
      const delivery = await nextOrNull(workQueue, waitMs, signal);
      const wasWaiting = performance.now() - askedAt < BURST_WITHIN_MS;
      if (delivery === null) slots.give();
      else lanes.run(options.keyOf?.(delivery.item), () => handle(delivery));
      if (delivery === null && isBurst) return;
      const mayAdd = burst.size + 1 < Math.min(PULLS_MAX, concurrency);
      if (delivery !== null && wasWaiting && mayAdd) addPull();
      if (delivery !== null && !wasWaiting) await sleep(PAUSE_MS, signal);
    }
  }
  async function handle(delivery: Delivery<Item>): Promise<void> {
    await handleOne(delivery, options);
    slots.give();
  }
  function addPull(): void {
    const pulling = pull(true).finally(() => burst.delete(pulling));
    burst.add(pulling);
  }
  await pull(false);
  await Promise.all(burst);
  await lanes.end();
}

/** Each pull, and each item until it is handled, has one of these. */
function createSlots(count: number) {
  const waiting: (() => void)[] = [];
  let free = count;
  return {
    async take(): Promise<void> {
      if (free === 0) return new Promise((resolve) => waiting.push(resolve));
      free -= 1;
    },
    give(): void {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    },
  };
}

/** Runs work at once; work with the same key one after the other. The work must not throw. */
function createLanes() {
  const underWay = new Set<Promise<void>>();
  const lastOf = new Map<string, Promise<void>>();
  return {
    run(key: string | undefined, work: () => Promise<void>): void {
      const before = key === undefined ? undefined : lastOf.get(key);
      const running = (before === undefined ? work() : before.then(work)).finally(() => {
        underWay.delete(running);
        if (key !== undefined && lastOf.get(key) === running) lastOf.delete(key);
      });
      underWay.add(running);
      if (key !== undefined) lastOf.set(key, running);
    },
    /** Resolves once all work has ended. */
    end: () => Promise.all(underWay),
  };
}

async function nextOrNull<Item>(
  workQueue: WorkQueue<Item>,
  waitMs: number,
  signal: AbortSignal,
): Promise<Delivery<Item> | null> {
  try {
    return await workQueue.next(waitMs, signal);
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
    const isDeadLetter = deliveries >= deliveriesMax && !(error instanceof Unavailable);
    onFailure(error, item, isDeadLetter ? 'dead letter' : 'retried');
    if (isDeadLetter) delivery.deadLetter(String(error));
    else delivery.retryAfter(retryMs(deliveries));
  }
}
