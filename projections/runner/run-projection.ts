import { Unavailable } from '#src/errors.ts';
import { createBackOff } from '#src/async/back-off.ts';
import { subscribeProjector } from './subscribe.ts';
import {
  BACKOFF_MS,
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
  const backOff = createBackOff(...BACKOFF_MS);
  try {
    while (!signal.aborted) {
      const before = projector.progress.checkpoint;
      try {
        await subscribeProjector(projector);
        backOff.reset();
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        if (projector.progress.checkpoint > before) backOff.reset();
        enterMode(projector, 'waiting-for-log');
        await backOff.pause(signal);
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
