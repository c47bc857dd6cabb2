import type { Log } from '#src/telemetry/logger.ts';
import type { Guard } from './guard.ts';

/** Between two looks at the network, and where it was not as it has to be. */
const LOOK_EVERY_MS = 60_000;
const LOOK_AGAIN_MS = 5_000;

/**
 * Whether browsers can be launched and ended on an engine: while it answers, and as long as its
 * sessions are known to be isolated. It begins as available.
 */
export type Availability = {
  onChange(listener: (isAvailable: boolean) => void): void;
  /** The engine does not answer. */
  away(): void;
  /** The engine answers; resolves once it is known whether it has all that browsers need. */
  back(): Promise<void>;
} & Disposable;

export function createAvailability(
  guard: Guard,
  log: Pick<Log, 'warn'>,
  lookEveryMs = LOOK_EVERY_MS,
): Availability {
  const listeners: ((isAvailable: boolean) => void)[] = [];
  let isBack = true;
  let isGuarded = true;
  let told = true;
  let looking: Promise<void> | null = null;
  let timer = later(lookEveryMs);

  function tell(): void {
    const isAvailable = isBack && isGuarded;
    if (isAvailable === told) return;
    told = isAvailable;
    for (const listener of listeners) listener(isAvailable);
  }
  async function lookOnce(): Promise<void> {
    try {
      await guard.check();
      isGuarded = true;
    } catch (error) {
      isGuarded = false;
      log.warn({ err: error }, 'no browser is launched: the network has not been proved closed');
    }
  }
  function look(): Promise<void> {
    clearTimeout(timer);
    looking ??= (isBack ? lookOnce() : Promise.resolve()).finally(() => {
      looking = null;
      timer = later(isGuarded ? lookEveryMs : LOOK_AGAIN_MS);
      tell();
    });
    return looking;
  }
  function later(withinMs: number): NodeJS.Timeout {
    return setTimeout(() => void look(), withinMs).unref();
  }
  return {
    onChange: (listener) => void listeners.push(listener),
    away() {
      isBack = false;
      tell();
    },
    async back() {
      if (isBack) return;
      isBack = true;
      // What was looked at while it went away says nothing of now.
      await looking;
      await look();
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
