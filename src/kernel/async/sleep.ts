import { setTimeout as delay } from 'node:timers/promises';

/**
 * Resolves after `ms` milliseconds, or at once when the signal aborts; the caller checks which. It
 * never rejects, and leaves no timer and no listener behind.
 * @param options `ref: false`: the wait does not keep the process alive
 */
export async function sleep(
  ms: number,
  signal?: AbortSignal,
  { ref = true }: { ref?: boolean } = {},
): Promise<void> {
  // Rejects only when the signal aborts.
  await delay(ms, undefined, { signal, ref }).catch(() => undefined);
}

/** Resolves in the next turn of the event loop: what is ready to run in this one goes first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
