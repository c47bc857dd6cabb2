import { sleep } from './sleep.ts';

const FIRST_MS = 100;
const MAX_MS = 5_000;

/** Pauses between retries: the shortest at first, doubled each time up to the longest. */
export type BackOff = {
  /** Waits before the next attempt; returns at once if the signal aborts. */
  pause(signal: AbortSignal): Promise<void>;
  /** Length of the next pause in milliseconds. */
  nextMs(): number;
  /** Call after a success: the next pause is the shortest again. */
  reset(): void;
};

/**
 * By default the pauses are 100 ms to 5 s, so that each failure may be logged: after some seconds
 * there is at most one in 5 s.
 */
export function createBackOff(firstMs: number = FIRST_MS, maxMs: number = MAX_MS): BackOff {
  let ms = firstMs;
  function nextMs(): number {
    const now = ms;
    ms = Math.min(maxMs, 2 * ms);
    return now;
  }
  return {
    nextMs,
    pause: (signal) => sleep(nextMs(), signal),
    reset() {
      ms = firstMs;
    },
  };
}

/**
 * Repeats the work until the signal aborts: if it fails or returns earlier, it is started again
 * after a pause.
 * @param work calls `wentWell` at each success, which makes the next pause short again
 */
export async function keepTrying(
  signal: AbortSignal,
  work: (wentWell: () => void) => Promise<void>,
  onFailure: (error: unknown) => void,
): Promise<void> {
  const backOff = createBackOff();
  while (!signal.aborted) {
    try {
      await work(() => backOff.reset());
    } catch (error) {
      if (!signal.aborted) onFailure(error);
    }
    await backOff.pause(signal);
  }
}
