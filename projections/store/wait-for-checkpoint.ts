/**
 * Waiting for a checkpoint without asking again and again: the store says when one moved (`heard`),
 * and a slow poll makes good a message that was lost. Nothing is remembered between calls, so a
 * store that lost everything is never taken to be where it once was.
 */
export type Reached = {
  /** As `Views.reached`. */
  reached: (projection: string, sequence: number, timeoutMs: number) => Promise<boolean>;
  /** A projection's checkpoint as the store just gave it. */
  heard(projection: string, checkpoint: number): void;
  /** Reads the checkpoints that are waited for: messages may have been lost. */
  recheck: () => void;
  /** Those who wait are told false. */
  close(): void;
};

type Waiter = { sequence: number; settle: (isReached: boolean) => void };

/** A lost message costs at most this long. */
const POLL_MS = 200;
/** More than one per open request cannot wait; beyond it the answer is false at once. */
const WAITERS_MAX = 50_000;

export function createReached(read: (projection: string) => Promise<number>): Reached {
  const waiting = new Map<string, Set<Waiter>>();
  let count = 0;
  let poll: NodeJS.Timeout | undefined;

  function heard(projection: string, checkpoint: number): void {
    for (const waiter of waiting.get(projection) ?? [])
      if (checkpoint >= waiter.sequence) waiter.settle(true);
  }

  function look(projection: string): void {
    // A store that does not answer is asked again by the poll.
    read(projection).then((checkpoint) => heard(projection, checkpoint), ignore);
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
    heard,
    recheck,
    reached(projection, sequence, timeoutMs) {
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
        // Waits before it looks: a checkpoint that moves in between is heard.
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
