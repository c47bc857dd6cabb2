import { UnknownEvent } from '#events/codec.ts';
import { Unavailable, WrittenByNewer } from '#src/kernel/errors.ts';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { subscribeProjector } from './subscribe.ts';
import {
  BACKOFF_MS,
  createProjector,
  enterMode,
  type Progress,
  type Projector,
  type RunProjectionOptions,
} from './projector.ts';

/** Between two looks at the store's checkpoint, and how many there are before the next attempt. */
const LOOK_MS = 500;
const LOOKS = 20;

/**
 * Keeps a projection's views folded until the signal aborts.
 * @throws any error that is neither Unavailable nor caused by an event: a bug; WrittenByNewer at an
 * event that only a newer version can read, if the store is not the projection's own: a rebuild
 * cannot be completed then
 */
export async function runProjection<View>(options: RunProjectionOptions<View>): Promise<void> {
  const { signal } = options;
  const projector = createProjector(options);
  const backOff = createBackOff(...BACKOFF_MS);
  let unknown: string | null = null;
  try {
    while (!signal.aborted) {
      const before = projector.progress.checkpoint;
      try {
        await subscribeProjector(projector);
        backOff.reset();
      } catch (error) {
        if (error instanceof UnknownEvent) {
          if (options.store !== undefined) throw new WrittenByNewer(error);
          if (unknown !== error.message) options.onUnknown?.(projector.id, error.message);
          unknown = error.message;
          await waitForNewer(projector);
          continue;
        }
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
 * Resolves once a projector that reads the event has moved the checkpoint, or after 10 s: the store
 * or the event store may have lost data meanwhile.
 */
async function waitForNewer(projector: Projector): Promise<void> {
  const { options, store, progress } = projector;
  enterMode(projector, 'waiting-for-newer');
  for (let looks = 0; looks < LOOKS && !options.signal.aborted; looks += 1) {
    await sleep(LOOK_MS, options.signal);
    const checkpoint = await options.views.checkpoint(store).catch(() => null);
    if (checkpoint !== null && checkpoint !== progress.checkpoint) return;
  }
}

/**
 * How far a projector is behind the events that it received, in sequences; 0: not at all. While the
 * store is unavailable it receives none, so that `eventStore.lastSequence` may be further ahead.
 */
export function lagOf({ seen, checkpoint }: Progress): number {
  return Math.max(0, seen - checkpoint);
}
