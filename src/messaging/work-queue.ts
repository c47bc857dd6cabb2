import { setTimeout as pause } from 'node:timers/promises';
import { Unavailable } from '#src/errors.ts';

/** One message of a work queue, held by one consumer until it is acknowledged or its lease ends. */
export type Delivery<Item> = {
  item: Item;
  /** 1 for the first delivery of this item. */
  deliveries: number;
  /** Done; resolves when the queue knows. */
  ack(): Promise<void>;
  /** Not now: deliver again after this many milliseconds. */
  retryAfter(delayMs: number): void;
  /** Still at it: the lease begins anew. */
  extendLease(): void;
  /** Never again: parked with its reason, for `bss parked`. */
  park(reason: string): void;
};

/**
 * Port: a durable work queue. Each item is held by one consumer at a time; unacknowledged ones come
 * again.
 */
export type Inbox<Item> = {
  /**
   * The next item, or null when none came within the bound or the signal aborted.
   * @throws Unavailable('event-log')
   */
  next(waitMs: number, signal: AbortSignal): Promise<Delivery<Item> | null>;
  /** Items that nobody has taken yet. */
  pending(): Promise<number>;
};

/** How the consumer of a queue stands with what it was given. */
export type ConsumeOptions<Item> = {
  signal: AbortSignal;
  /** Handles one item; a throw means: not now, deliver it again. Must bear being called twice. */
  handle: (item: Item) => Promise<void>;
  /** After so many failed deliveries the item is parked with its reason. */
  deliveriesMax: number;
  onFailure: (error: unknown, item: Item, fate: 'retried' | 'parked') => void;
};

/** One pull waits this long; then the next one begins. */
const PULL_MS = 30_000;
/** Pause before a retry: 100 ms, doubled by each delivery, 10 s at most. */
const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 10_000;
/** Pause while the queue itself does not answer. */
const AWAY_MS = 250;

/** Pull → handle → acknowledge, one item at a time, until the signal aborts. Never throws. */
export async function consume<Item>(
  inbox: Inbox<Item>,
  options: ConsumeOptions<Item>,
): Promise<void> {
  while (!options.signal.aborted) {
    const delivery = await nextOrNull(inbox, options.signal);
    if (delivery !== null) await handleOne(delivery, options);
  }
}

async function nextOrNull<Item>(
  inbox: Inbox<Item>,
  signal: AbortSignal,
): Promise<Delivery<Item> | null> {
  try {
    return await inbox.next(PULL_MS, signal);
  } catch {
    // The queue is away; its connection comes back by itself, and nothing is lost meanwhile.
    await pause(AWAY_MS, undefined, { signal }).catch(() => undefined);
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
    // The part that is away is no fault of the item's: it is not parked for that.
    const isParked = deliveries >= deliveriesMax && !(error instanceof Unavailable);
    onFailure(error, item, isParked ? 'parked' : 'retried');
    if (isParked) delivery.park(String(error));
    else delivery.retryAfter(Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (deliveries - 1)));
  }
}
