import { sleep } from './sleep.ts';

class Again {
  readonly isAtOnce: boolean;
  constructor(isAtOnce: boolean) {
    this.isAtOnce = isAtOnce;
  }
}
/** The result of an attempt that is to be repeated after the pause. */
export const again = new Again(false);
/** The result of an attempt that is to be repeated without a pause. */
export const againAtOnce = new Again(true);

export type RetryOptions = {
  /** The most attempts; by default there is no bound. */
  attemptsMax?: number;
  /** An attempt that fails later than this many milliseconds is the last; by default none is. */
  withinMs?: number;
  /**
   * The pause in milliseconds after so many attempts: `doubling`, `fullJitter` or the caller's own.
   */
  pauseMs: (attempts: number) => number;
  /** Whether an attempt that threw this error is repeated; by default none is. */
  isTransient?: (error: unknown) => boolean;
  /** Called with the error of an attempt that is repeated, before the pause. */
  onRetry?: (error: unknown) => void;
  /** The error to throw if even the last attempt returned `again`. */
  onExhausted?: (attempts: number) => Error;
  /** Ends the pause, and with it the attempts. */
  signal?: AbortSignal | undefined;
};

/**
 * Repeats an attempt while it returns `again` or throws a transient error.
 * @param attempt gets the number of the attempt, beginning with 1
 * @returns the first other result
 * @throws an error that is not transient; the last attempt's error or `onExhausted`'s at a bound;
 * the signal's reason if it aborts between two attempts
 */
export async function retry<Result>(
  options: RetryOptions,
  attempt: (count: number) => Promise<Result | Again>,
): Promise<Result> {
  const { attemptsMax = Infinity, withinMs = Infinity, pauseMs, signal } = options;
  const { isTransient = () => false, onRetry, onExhausted = givenUp } = options;
  const begunAt = performance.now();
  for (let count = 1; ; count += 1) {
    let failure: { error: unknown } | null = null;
    let isAtOnce = false;
    try {
      const result = await attempt(count);
      if (!(result instanceof Again)) return result;
      ({ isAtOnce } = result);
    } catch (error) {
      if (!isTransient(error)) throw error;
      failure = { error };
    }
    if (count >= attemptsMax || performance.now() - begunAt > withinMs)
      throw failure === null ? onExhausted(count) : failure.error;
    if (failure !== null) onRetry?.(failure.error);
    if (!isAtOnce) await sleep(pauseMs(count), signal);
    signal?.throwIfAborted();
  }
}

function givenUp(attempts: number): Error {
  return new Error(`given up after ${attempts} attempts`);
}

/** Pauses of `firstMs`, doubled by each attempt, at most `maxMs`. */
export function doubling(firstMs: number, maxMs: number): (attempts: number) => number {
  return (attempts) => Math.min(maxMs, firstMs * 2 ** (attempts - 1));
}

/**
 * Random pauses between 0 and 2 ms, 4 ms and so on, at most `maxMs`: callers that were in each
 * other's way do not meet again.
 */
export function fullJitter(maxMs: number): (attempts: number) => number {
  return (attempts) => Math.random() * Math.min(maxMs, 2 ** attempts);
}
