import type { RecordedEvent } from '#events/events.ts';
import { createNotifier, type Notifier } from '#src/kernel/async/notifier.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { Delivery, DeliveryBound, OpenWorkQueue, WorkQueue } from './work-queue.ts';

/** Milliseconds since the epoch; set by hand in tests. */
export type Clock = { now(): number };

export type MemoryDeadLetter<Item> = { item: Item; reason: string };

/** A work queue in this process: the writer's side, and the consumers' side. */
export type MemoryWorkQueue<Item> = {
  push(item: Item): void;
  workQueue: WorkQueue<Item>;
  deadLetters: MemoryDeadLetter<Item>[];
};

const LEASE_MS = 30_000;
const DELIVERIES_MAX = 10;
/**
 * Setting the clock wakes no consumer, so a consumer that waits for a held item polls this often.
 */
const LOOK_AGAIN_MS = 10;

/** By default a lease of 30 s, and a look every 10 ms whether a held item may be delivered. */
export type MemoryWorkQueueOptions = { leaseMs?: number; lookAgainMs?: number };

type Entry<Item> = {
  item: Item;
  deliveries: number;
  /** When it may be delivered: at once, after a retry's delay, or when its lease ends. */
  readyAt: number;
};

/**
 * The work queue of the memory adapters, with the rules of the durable one: leases, retries, dead
 * letters.
 */
export function createMemoryWorkQueue<Item>(
  clock: Clock,
  {
    leaseMs = LEASE_MS,
    lookAgainMs = LOOK_AGAIN_MS,
    isBounded = true,
  }: MemoryWorkQueueOptions & DeliveryBound = {},
): MemoryWorkQueue<Item> {
  const entries = new Set<Entry<Item>>();
  const deadLetters: MemoryDeadLetter<Item>[] = [];
  const notifier = createNotifier();
  const waiters = createWaiters(notifier);

  function giveUp(entry: Entry<Item>, reason: string) {
    if (entries.delete(entry)) deadLetters.push({ item: entry.item, reason });
  }

  function take(): Entry<Item> | null {
    const now = clock.now();
    for (const entry of entries) {
      if (entry.readyAt > now) continue;
      if (entry.deliveries < DELIVERIES_MAX || !isBounded) {
        entry.deliveries += 1;
        entry.readyAt = now + leaseMs;
        return entry;
      }
      giveUp(entry, `delivered ${DELIVERIES_MAX} times`);
    }
    return null;
  }

  const next = (waitMs: number, signal: AbortSignal) =>
    waiters.inTurn(async (isFirst) => {
      const until = performance.now() + waitMs;
      while (!signal.aborted) {
        const entry = isFirst() ? take() : null;
        if (entry !== null) return deliveryOf(entry);
        const leftMs = until - performance.now();
        if (leftMs <= 0) return null;
        await notifier.wait(signal, entries.size > 0 ? Math.min(leftMs, lookAgainMs) : leftMs);
      }
      return null;
    });

  function deliveryOf(entry: Entry<Item>): Delivery<Item> {
    return {
      item: entry.item,
      deliveries: entry.deliveries,
      async ack() {
        entries.delete(entry);
      },
      retryAfter(delayMs) {
        entry.readyAt = clock.now() + delayMs;
        notifier.notify();
      },
      extendLease() {
        entry.readyAt = clock.now() + leaseMs;
      },
      deadLetter: (reason) => giveUp(entry, reason),
    };
  }

  return {
    deadLetters,
    push(item) {
      entries.add({ item, deliveries: 0, readyAt: -Infinity });
      notifier.notify();
    },
    workQueue: {
      next,
      pending: async () => [...entries].filter(({ deliveries }) => deliveries === 0).length,
    },
  };
}

/** The consumers that wait: an item is delivered to the one that has waited longest. */
function createWaiters(notifier: Notifier) {
  const waiting = new Set<symbol>();
  return {
    async inTurn<Found>(find: (isFirst: () => boolean) => Promise<Found>): Promise<Found> {
      const self = Symbol('consumer');
      waiting.add(self);
      try {
        return await find(() => waiting.values().next().value === self);
      } finally {
        waiting.delete(self);
        // It is the next one's turn.
        if (waiting.size > 0) notifier.notify();
      }
    },
  };
}

/**
 * Work queues over the events of a store, in this process; they live as long as the process.
 * @param clock the clock of leases and retries
 */
export function createMemoryWorkQueues(
  eventStore: Pick<EventStore, 'subscribe'>,
  {
    clock = { now: () => Date.now() },
    ...options
  }: { clock?: Clock } & MemoryWorkQueueOptions = {},
): OpenWorkQueue {
  const queues = new Map<string, WorkQueue<RecordedEvent>>();
  const { signal } = new AbortController();

  async function fill(queue: MemoryWorkQueue<RecordedEvent>, subjects: readonly string[]) {
    const options = { subjects, after: 0, signal, onUnreadable: () => undefined };
    for await (const batch of eventStore.subscribe(options))
      for (const event of batch) queue.push(event);
  }
  return async (name, subjects, bound) => {
    const known = queues.get(name);
    if (known !== undefined) return known;
    const queue = createMemoryWorkQueue<RecordedEvent>(clock, { ...options, ...bound });
    queues.set(name, queue.workQueue);
    void fill(queue, subjects);
    return queue.workQueue;
  };
}
