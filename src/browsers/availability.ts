import type { Logger } from '#src/kernel/telemetry/logger.ts';

/**
 * Checks that sessions are isolated, as the start has verified.
 * @throws CheckNotRun if it could not be checked; another Error if they are not
 */
export type IsolationCheck = { check(): Promise<void> };

/** Nothing was found out, as where no node has room for the check: what was verified stands. */
export class CheckNotRun extends Error {
  override readonly name = 'CheckNotRun';
}

/** Between two checks of the network, and after one that has failed. */
const CHECK_EVERY_MS = 60_000;
const RECHECK_AFTER_MS = 5_000;

/**
 * Whether browsers can be launched and ended on an engine or a cluster: while it answers, and as
 * long as its sessions are known to be isolated. Initially true.
 */
export type Availability = {
  onChange(listener: (isAvailable: boolean) => void): void;
  /** Notes that the engine does not answer. */
  engineLost(): void;
  /** Notes that the engine answers again; resolves once the network has been checked. */
  engineBack(): Promise<void>;
} & Disposable;

export function createAvailability(
  guard: IsolationCheck,
  log: Pick<Logger, 'warn'>,
  checkEveryMs = CHECK_EVERY_MS,
): Availability {
  const listeners: ((isAvailable: boolean) => void)[] = [];
  let isEngineThere = true;
  let isGuarded = true;
  let reported = true;
  let isDisposed = false;
  let checking: Promise<void> | null = null;
  let timer = checkAfter(checkEveryMs);

  function report(): void {
    const isAvailable = isEngineThere && isGuarded;
    if (isAvailable === reported) return;
    reported = isAvailable;
    for (const listener of listeners) listener(isAvailable);
  }
  async function checkGuard(): Promise<void> {
    try {
      await guard.check();
      isGuarded = true;
    } catch (error) {
      if (error instanceof CheckNotRun) {
        log.warn({ err: error }, 'network isolation could not be checked; its last check stands');
        return;
      }
      isGuarded = false;
      log.warn({ err: error }, 'launches paused: network isolation is not verified');
    }
  }
  function check(): Promise<void> {
    clearTimeout(timer);
    checking ??= (isEngineThere ? checkGuard() : Promise.resolve()).finally(() => {
      checking = null;
      if (isDisposed) return;
      timer = checkAfter(isGuarded ? checkEveryMs : RECHECK_AFTER_MS);
      report();
    });
    return checking;
  }
  function checkAfter(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => void check(), delayMs).unref();
  }
  return {
    onChange: (listener) => void listeners.push(listener),
    engineLost() {
      isEngineThere = false;
      report();
    },
    async engineBack() {
      if (isEngineThere) return;
      isEngineThere = true;
      // A check that began while the engine was away is no longer valid.
      await checking;
      await check();
    },
    [Symbol.dispose]() {
      isDisposed = true;
      clearTimeout(timer);
    },
  };
}
