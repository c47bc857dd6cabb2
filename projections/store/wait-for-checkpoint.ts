/**
 * Calls that wait for a checkpoint. The store's notifications resolve them (`notify`), and a slow
 * poll covers lost messages. No checkpoint is remembered between calls, so that a store that lost
 * its data is never believed to be at its old checkpoint.
 */
export type CheckpointWaiters = {
  /** Implements `Views.waitForCheckpoint`. */
  waitForCheckpoint: (projection: string, sequence: number, timeoutMs: number) => Promise<boolean>;
  /** The store has reported a projection's checkpoint. */
  notify(projection: string, checkpoint: number): void;
  /** Reads the checkpoints that calls wait for: after a reconnect messages may have been lost. */
  recheck: () => void;
  /** Resolves all waiting calls with false. */
  close(): void;
};

type Waiter = { sequence: number; settle: (isReached: boolean) => void };

/** A lost message delays a call by at most this long. */
const POLL_MS = 200;
/** One per open request. Beyond it the result is false at once. */
const WAITERS_MAX = 50_000;

export function createCheckpointWaiters(
  read: (projection: string) => Promise<number>,
): CheckpointWaiters {
  const waiting = new Map<string, Set<Waiter>>();
  let count = 0;
  let poll: NodeJS.Timeout | undefined;

  function observe(projection: string, checkpoint: number): void {
    for (const waiter of waiting.get(projection) ?? [])
      if (checkpoint >= waiter.sequence) waiter.settle(true);
  }

  function look(projection: string): void {
    // If the store does not answer, the poll retries.
    read(projection).then((checkpoint) => observe(projection, checkpoint), ignore);
  }

  function recheck(): void {
    for (const projection of waiting.keys()) look(projection);
  }

  function add(projection: string, waiter: Waiter): void {
    const waiters = waiting.get(projection) ?? new Set();
    waiting.set(projection, waiters.add(waiter));
    count += 1;
    poll ??= setInterval(recheck, POLL_MS);
  }

  function remove(projection: string, waiter: Waiter): void {
    const waiters = waiting.get(projection);
    if (waiters?.delete(waiter) !== true) return;
    if (waiters.size === 0) waiting.delete(projection);
    count -= 1;
    if (count > 0) return;
    clearInterval(poll);
    poll = undefined;
  }

  return {
    notify: observe,
    recheck,
    waitForCheckpoint(projection, sequence, timeoutMs) {
      if (count >= WAITERS_MAX) return Promise.resolve(false);
      return new Promise((resolve) => {
        const timeout = setTimeout(() => waiter.settle(false), timeoutMs);
        const waiter: Waiter = {
          sequence,
          settle(isReached) {
            clearTimeout(timeout);
            remove(projection, waiter);
            resolve(isReached);
          },
        };
        // Registered before the read: a checkpoint that moves in between is not missed.
        add(projection, waiter);
        look(projection);
      });
    },
    close() {
      for (const waiters of waiting.values()) for (const waiter of waiters) waiter.settle(false);
    },
  };
}

function ignore(): void {}
