import { setTimeout as delay } from 'node:timers/promises';

const FIRST_MS = 100;
const MAX_MS = 5_000;

/** Pauses between tries of the same thing: 100 ms, then twice as long each time, at most 5 s. */
export type BackOff = {
  /** Waits before the next try; ends at once where the signal aborts. */
  pause(signal: AbortSignal): Promise<void>;
  /** How long the next pause is. */
  nextMs(): number;
  /** It went well: the next pause is the shortest again. */
  reset(): void;
};

/** Each failure may be logged: after some seconds there is at most one in 5 s. */
export function createBackOff(): BackOff {
  let ms = FIRST_MS;
  function nextMs(): number {
    const now = ms;
    ms = Math.min(MAX_MS, 2 * ms);
    return now;
  }
  return {
    nextMs,
    // Rejects only when the signal aborts, which the caller sees for itself.
    pause: (signal) => delay(nextMs(), undefined, { signal }).catch(() => undefined),
    reset() {
      ms = FIRST_MS;
    },
  };
}

/**
 * Keeps work going until the signal aborts: where it fails, or ends before that, it is begun again
 * after a pause. @param work calls `wentWell` at each success: the next pause is short again
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
