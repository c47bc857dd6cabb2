import { Unavailable } from '#src/kernel/errors.ts';

/** The callers that wait in a queue's `next`, and the pulls that are open for them. */
export type Pulls<Found> = {
  /** Waits for an item; null if none arrived within the bound or the signal aborted. */
  wait(waitMs: number, signal: AbortSignal): Promise<Found | null>;
  /** Gives an item to the caller that has waited longest; false if none waits. */
  give(found: Found): boolean;
  /** Opens a pull for each caller without one; to be called after a reconnect. */
  top(): void;
  /** How long the server has answered none of the open pulls; 0: none is open. */
  silenceMs: () => number;
};

export type PullsOptions<Found> = {
  /** Pulls one item; null if none arrived in `openMs`. Never rejects: it handles errors itself. */
  pull: (openMs: number) => Promise<Found | null>;
  /** Whether a pull can be sent now; if not, `top` will be called. */
  canPull: () => boolean;
  /** Returns an item to the queue that arrived when no caller waited any more. */
  putBack: (found: Found) => void;
  /** Why the queue cannot be reached; undefined if it can. */
  trouble: () => Error | undefined;
};

/** Duration of a pull. The library accepts none under a second. */
const PULL_MIN_MS = 1_000;
const PULL_MAX_MS = 5_000;
/** The server may answer a pull this much later. */
const GRACE_MS = 100;

type Waiter<Found> = {
  until: number;
  timer: NodeJS.Timeout;
  settle: (result: Found | null | Unavailable) => void;
};

/**
 * Keeps as many pulls open as callers wait. A pull cannot be cancelled: if its caller has gone, it
 * stays open, serves the next caller, and ends by itself.
 */
export function createPulls<Found>(options: PullsOptions<Found>): Pulls<Found> {
  const { pull, canPull, putBack, trouble } = options;
  const waiters: Waiter<Found>[] = [];
  let open = 0;
  let heardAt = 0;

  function top() {
    while (canPull() && open < waiters.length) {
      const leftMs = (waiters[open]?.until ?? 0) - performance.now();
      if (open === 0) heardAt = performance.now();
      open += 1;
      void pull(Math.max(PULL_MIN_MS, Math.min(PULL_MAX_MS, Math.ceil(leftMs)))).then(onEnd);
    }
  }
  function onEnd(found: Found | null) {
    open -= 1;
    heardAt = performance.now();
    if (found !== null && !give(found)) putBack(found);
    const now = performance.now();
    if (trouble() === undefined)
      for (const waiter of waiters.filter(({ until }) => until <= now)) settle(waiter, null);
    top();
  }
  function settle(waiter: Waiter<Found>, result: Found | null | Unavailable) {
    waiters.splice(waiters.indexOf(waiter), 1);
    clearTimeout(waiter.timer);
    waiter.settle(result);
  }
  function give(found: Found): boolean {
    const [waiter] = waiters;
    if (waiter !== undefined) settle(waiter, found);
    return waiter !== undefined;
  }

  return {
    top,
    give,
    silenceMs: () => (open === 0 ? 0 : performance.now() - heardAt),
    wait(waitMs, signal) {
      if (signal.aborted) return Promise.resolve(null);
      const { promise, resolve, reject } = Promise.withResolvers<Found | null>();
      const onAbort = () => settle(waiter, null);
      const waiter: Waiter<Found> = {
        until: performance.now() + waitMs,
        timer: setTimeout(() => {
          const cause = trouble();
          settle(waiter, cause === undefined ? null : new Unavailable('event-log', cause));
        }, waitMs + GRACE_MS),
        settle(result) {
          signal.removeEventListener('abort', onAbort);
          if (result instanceof Unavailable) reject(result);
          else resolve(result);
        },
      };
      signal.addEventListener('abort', onAbort);
      waiters.push(waiter);
      top();
      return promise;
    },
  };
}
