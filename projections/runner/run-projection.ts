import { setTimeout as delay } from 'node:timers/promises';
import { Unavailable } from '#src/errors.ts';
import { subscribeProjector } from './subscribe.ts';
import {
  backoffMs,
  createProjector,
  enterMode,
  type Progress,
  type RunProjectionOptions,
} from './projector.ts';

/**
 * Keeps a projection's views folded until the signal aborts.
 * @throws any error that is neither Unavailable nor caused by an event: a bug.
 */
export async function runProjection<View>(options: RunProjectionOptions<View>): Promise<void> {
  const { signal } = options;
  const projector = createProjector(options);
  let failures = 0;
  try {
    while (!signal.aborted) {
      const before = projector.progress.checkpoint;
      try {
        await subscribeProjector(projector);
        failures = 0;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        failures = projector.progress.checkpoint > before ? 1 : failures + 1;
        enterMode(projector, 'waiting-for-log');
        await delay(backoffMs(failures), undefined, { signal });
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/**
 * How far a projector is behind the events that it received, in sequences; 0: not at all. While the
 * store is unavailable it receives none, so that `eventStore.lastSequence` may be further ahead.
 */
export function lagOf({ seen, checkpoint }: Progress): number {
  return Math.max(0, seen - checkpoint);
}
