import { describe, expect, it } from 'vitest';
import { consume, type ConsumeOptions } from '#src/kernel/messaging/work-queue.ts';
import { createMemoryWorkQueue } from '#src/kernel/messaging/work-queue.memory.ts';
import { nextTurn } from '#src/kernel/async/sleep.ts';

type Item = { key: string; number: number };

/** A queue with items, and a consumer whose handling of each item ends when the test says so. */
function open(items: readonly Item[], options: Partial<ConsumeOptions<Item>> = {}) {
  const queue = createMemoryWorkQueue<Item>({ now: () => Date.now() });
  for (const item of items) queue.push(item);
  const stop = new AbortController();
  const begun: Item[] = [];
  const waiting = new Map<Item, (error?: Error) => void>();
  const consumed = consume(queue.workQueue, {
    signal: stop.signal,
    deliveriesMax: 2,
    onFailure() {},
    keyOf: ({ key }) => key,
    handle(item) {
      begun.push(item);
      return new Promise((resolve, reject) => {
        waiting.set(item, (error) => (error === undefined ? resolve() : reject(error)));
      });
    },
    ...options,
  });
  return {
    deadLetters: queue.deadLetters,
    begun,
    end(item: Item | undefined, error?: Error) {
      const settle = item && waiting.get(item);
      if (settle === undefined) throw new Error('it is not being handled');
      waiting.delete(item as Item);
      settle(error);
    },
    stop: () => stop.abort(),
    consumed,
  };
}

function itemsOf(...keys: string[]): Item[] {
  return keys.map((key, number) => ({ key, number }));
}

describe('a consumer of several items at once', () => {
  it('handles as many as it may, and the next one when one has ended', async () => {
    const items = itemsOf(...'abcdefghijklmnopqrstuvwxyz'.split(''));
    const { begun, end, stop, consumed } = open(items, { concurrency: 20 });
    await expect.poll(() => begun).toEqual(items.slice(0, 20));
    end(items[7]);
    await expect.poll(() => begun).toEqual(items.slice(0, 21));
    stop();
    for (const item of items.slice(0, 21)) if (item !== items[7]) end(item);
    await consumed;
    expect(begun).toHaveLength(21);
  });

  it('handles one at a time if nothing else is said', async () => {
    const items = itemsOf('a', 'b');
    const { begun, end, stop, consumed } = open(items);
    await expect.poll(() => begun).toEqual(items.slice(0, 1));
    end(items[0]);
    await expect.poll(() => begun).toEqual(items);
    stop();
    end(items[1]);
    await consumed;
  });

  it('handles items with the same key one after the other, in order', async () => {
    const items = itemsOf('a', 'a', 'b', 'a', 'b');
    const [a1, a2, b1, a3, b2] = items;
    const { begun, end, stop, consumed } = open(items, { concurrency: 10 });
    await expect.poll(() => begun).toEqual([a1, b1]);
    end(b1);
    await expect.poll(() => begun).toEqual([a1, b1, b2]);
    end(a1);
    await expect.poll(() => begun).toEqual([a1, b1, b2, a2]);
    end(a2);
    await expect.poll(() => begun).toEqual([a1, b1, b2, a2, a3]);
    stop();
    end(b2);
    end(a3);
    await consumed;
  });

  it('retries an item that failed, and makes it a dead letter, while others go on', async () => {
    const items = itemsOf('a', 'a', 'b');
    const [a1, a2, b1] = items;
    const { begun, end, deadLetters, stop, consumed } = open(items, { concurrency: 10 });
    await expect.poll(() => begun).toEqual([a1, b1]);
    end(a1, new Error('not yet'));
    await expect.poll(() => begun).toEqual([a1, b1, a2]);
    end(a2);
    await expect.poll(() => begun).toEqual([a1, b1, a2, a1]);
    end(a1, new Error('never'));
    await expect.poll(() => deadLetters).toEqual([{ item: a1, reason: 'Error: never' }]);
    stop();
    end(b1);
    await consumed;
  });

  it('asks for one item at a time while each comes alone, and for several where they wait', async () => {
    const { workQueue, push, open: asked, mostOpen } = countPulls();
    const stop = new AbortController();
    let handled = 0;
    const consumed = consume(workQueue, {
      signal: stop.signal,
      deliveriesMax: 2,
      onFailure() {},
      concurrency: 20,
      handle: async () => void (handled += 1),
    });
    await expect.poll(asked).toBe(1);
    // Far more than an item that was waiting would take.
    const askedAt = performance.now();
    while (performance.now() - askedAt < 100) await nextTurn();
    push(1);
    await expect.poll(() => handled).toBe(1);
    await expect.poll(asked).toBe(1);
    expect(mostOpen()).toBe(1);
    push(20);
    await expect.poll(() => handled).toBe(21);
    expect(mostOpen()).toBeGreaterThan(1);
    stop.abort();
    await consumed;
  });
});

/** A queue that tells how many pulls are open. */
function countPulls() {
  const queue = createMemoryWorkQueue<Item>({ now: () => Date.now() });
  let pulls = 0;
  let most = 0;
  return {
    mostOpen: () => most,
    push(count: number) {
      for (const item of itemsOf(...Array.from({ length: count }, String))) queue.push(item);
    },
    open: () => pulls,
    workQueue: {
      ...queue.workQueue,
      async next(waitMs: number, signal: AbortSignal) {
        pulls += 1;
        most = Math.max(most, pulls);
        try {
          return await queue.workQueue.next(waitMs, signal);
        } finally {
          pulls -= 1;
        }
      },
    },
  };
}
