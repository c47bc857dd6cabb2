import { Unavailable } from '#src/errors.ts';

/** Those who wait in an inbox's `next`, and the pulls that were sent for them. */
export type Pulls<Found> = {
  /** Waits for what is given; null where nothing came within the bound or the signal aborted. */
  wait(waitMs: number, signal: AbortSignal): Promise<Found | null>;
  /** Gives it to the one who waits longest; false where nobody waits. */
  give(found: Found): boolean;
  /** The oldest pull was answered. */
  answered(): void;
  /** Sends a pull for each who waits and has none. */
  top(): void;
  /** Lets those go whose time is over. */
  expire(): void;
  /** The server knows nothing of any pull any more: sends them anew. */
  restart(): void;
};

export type PullsOptions = {
  /** Sends a pull of one message, open for so long; 0: for what is there now. */
  send: (openMs: number) => void;
  /** Whether a pull can be sent now; where not, `restart` follows. */
  canSend: () => boolean;
  /** Why the queue cannot be reached; undefined where it can. */
  trouble: () => Error | undefined;
};

/** Longest life of a pull, and so of one that the server forgot, as in a failover. */
const PULL_MS = 5_000;
/** The server ends a pull in time; so much later we take it to be lost. */
const GRACE_MS = 100;

type Waiter<Found> = {
  until: number;
  timer: NodeJS.Timeout;
  settle: (result: Found | null | Unavailable) => void;
};

/**
 * Keeps as many pulls open as there are waiters. A pull cannot be taken back: one whose waiter went
 * away stays open, serves the next waiter, and ends by itself.
 */
export function createPulls<Found>({ send, canSend, trouble }: PullsOptions): Pulls<Found> {
  const waiters: Waiter<Found>[] = [];
  /** The open pulls by their timers, oldest first. */
  const open: NodeJS.Timeout[] = [];

  function top() {
    if (!canSend()) return;
    for (const { until } of waiters.slice(open.length)) {
      const openMs = Math.max(0, Math.min(PULL_MS, Math.ceil(until - performance.now())));
      send(openMs);
      const timer = setTimeout(() => {
        open.splice(open.indexOf(timer), 1);
        top();
      }, openMs + GRACE_MS);
      timer.unref(); // those who wait keep the process alive; a pull that outlives them does not
      open.push(timer);
    }
  }

  function settle(waiter: Waiter<Found>, result: Found | null | Unavailable) {
    waiters.splice(waiters.indexOf(waiter), 1);
    clearTimeout(waiter.timer);
    waiter.settle(result);
  }

  return {
    top,
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
    give(found) {
      const [waiter] = waiters;
      if (waiter !== undefined) settle(waiter, found);
      return waiter !== undefined;
    },
    answered() {
      clearTimeout(open.shift());
    },
    expire() {
      const now = performance.now();
      for (const waiter of waiters.filter(({ until }) => until <= now)) settle(waiter, null);
    },
    restart() {
      for (const timer of open.splice(0)) clearTimeout(timer);
      top();
    },
  };
}
