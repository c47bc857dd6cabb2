import type { Delivery, Inbox } from './work-queue.ts';
import { createBell } from '#src/async/notifier.ts';

/** Milliseconds since the epoch; in tests driven by hand. */
export type Clock = { now(): number };

export type Parked<Item> = { item: Item; reason: string };

/** A work queue in this process: what its writer sees, and the inbox of its consumers. */
export type MemoryQueue<Item> = {
  push(item: Item): void;
  inbox: Inbox<Item>;
  parked: Parked<Item>[];
};

const LEASE_MS = 30_000;
const DELIVERIES_MAX = 10;
/** The hand-driven clock does not tell when it moves: those who wait for a held item look again. */
const LOOK_AGAIN_MS = 10;

type Entry<Item> = {
  item: Item;
  deliveries: number;
  /** When it may be handed out: at once, after a retry's delay, or when its lease ends. */
  readyAt: number;
};

/** The memory adapters' work queue, with the durable one's rules: leases, retries, parking. */
export function createMemoryQueue<Item>(
  clock: Clock,
  leaseMs: number = LEASE_MS,
): MemoryQueue<Item> {
  const entries = new Set<Entry<Item>>();
  const parked: Parked<Item>[] = [];
  const bell = createBell();

  function park(entry: Entry<Item>, reason: string) {
    if (entries.delete(entry)) parked.push({ item: entry.item, reason });
  }

  function take(): Entry<Item> | null {
    const now = clock.now();
    for (const entry of entries) {
      if (entry.readyAt > now) continue;
      if (entry.deliveries < DELIVERIES_MAX) {
        entry.deliveries += 1;
        entry.readyAt = now + leaseMs;
        return entry;
      }
      park(entry, `delivered ${DELIVERIES_MAX} times`);
    }
    return null;
  }

  async function next(waitMs: number, signal: AbortSignal): Promise<Delivery<Item> | null> {
    const until = performance.now() + waitMs;
    while (!signal.aborted) {
      const entry = take();
      if (entry !== null) return deliveryOf(entry);
      const leftMs = until - performance.now();
      if (leftMs <= 0) return null;
      await bell.heard(signal, entries.size > 0 ? Math.min(leftMs, LOOK_AGAIN_MS) : leftMs);
    }
    return null;
  }

  function deliveryOf(entry: Entry<Item>): Delivery<Item> {
    return {
      item: entry.item,
      deliveries: entry.deliveries,
      async ack() {
        entries.delete(entry);
      },
      retryAfter(delayMs) {
        entry.readyAt = clock.now() + delayMs;
        bell.ring();
      },
      extendLease() {
        entry.readyAt = clock.now() + leaseMs;
      },
      park: (reason) => park(entry, reason),
    };
  }

  return {
    parked,
    push(item) {
      entries.add({ item, deliveries: 0, readyAt: -Infinity });
      bell.ring();
    },
    inbox: {
      next,
      pending: async () => [...entries].filter(({ deliveries }) => deliveries === 0).length,
    },
  };
}
