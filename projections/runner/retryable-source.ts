import { Unavailable } from '#src/errors.ts';
import type { ProjectedLog } from './run-projection.ts';

/** A failure is told at most so often: every projection asks the log each second. */
const TOLD_EVERY_MS = 5_000;

/**
 * The same log for those who try on for ever: another answer than an outage (a starting server that
 * does not know its stream yet, a permission that is gone for a moment) is no bug of a projection,
 * and counts as an outage. A call that is wrong in itself stays an error. Followers of a process's
 * log do not end by themselves (one-reader.ts).
 */
export function steadyLog(log: ProjectedLog, onFailure: (error: unknown) => void): ProjectedLog {
  let toldAt = -Infinity;

  function refuse(error: unknown): never {
    const isBug = error instanceof RangeError || error instanceof TypeError;
    if (isBug || error instanceof Unavailable) throw error;
    if (performance.now() - toldAt >= TOLD_EVERY_MS) {
      toldAt = performance.now();
      onFailure(error);
    }
    throw new Unavailable('event-log', error);
  }
  return {
    follow: (options) => log.follow(options),
    lastSequence: (subjects) => log.lastSequence(subjects).catch(refuse),
    facts: () => log.facts().catch(refuse),
  };
}
