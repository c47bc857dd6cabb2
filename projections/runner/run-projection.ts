import { setTimeout as delay } from 'node:timers/promises';
import { Unavailable } from '#src/errors.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import type { ParkedEvents } from '#src/messaging/dead-letters.ts';
import { followLog } from './subscribe.ts';
import type { Projection } from '../projection.ts';
import { backoffMs, createProjector, enter } from './projector.ts';
import type { Views } from '../store/views.ts';

/**
 * The projector's modes:
 *
 * - starting: asks the store for its checkpoint, and drops what it holds where that is of another
 *   log or of more than there is in the log. Then catching-up.
 * - catching-up: folds what the log held when it began to follow; the next batch is read while the
 *   store writes. Then live.
 * - live: folds what comes; every 500 ms without an event it asks whether the store has kept the
 *   checkpoint, every 2 s whether the log is still the same.
 * - rewinding: the store has lost what came before (FLUSHALL, restart), or the log has: what is
 *   held here is forgotten, and it follows again from the store's checkpoint. Then catching-up.
 * - waiting-for-store: the read model does not answer. The batch is held and tried again, at most
 *   1 s apart, for ever; meanwhile the log keeps the events. Then the mode before.
 * - waiting-for-log: the same for the event log. Then starting.
 *
 * While a write is under way the log's follower collects what comes, so batches grow with the load;
 * one batch is in memory here, of at most 500 events; while catching up so many as change the views
 * of one write, at most 4,000; in a store that is written alone three times 4,000. Any number of
 * projectors may run at once: the store's checkpoint decides whose batch counts.
 */
export type ProjectorMode =
  | 'starting'
  | 'catching-up'
  | 'live'
  | 'rewinding'
  | 'waiting-for-store'
  | 'waiting-for-log';

export type Progress = {
  mode: ProjectorMode;
  /** Sequence up to which the views are known to be folded. */
  checkpoint: number;
  /** Highest sequence that came from the log. */
  seen: number;
  /** How many events were folded since the start. */
  folded: number;
};

/**
 * An event that no view could be made of; its view stays as it was and the others go on, once that
 * it was passed over is kept. Told again by every projector that meets it and after each rewind.
 */
export type ParkedEvent = { projection: string; sequence: number; subject: string };

export type RunProjectionOptions<View> = {
  projection: Projection<View>;
  /** The store's name; left out: the projection's own. A rebuild folds into another one. */
  store?: string;
  /**
   * Nobody else writes to the store or reads it: batches may be larger than one write, and events
   * that this says may be left out are, where a later one of their aggregate has all of the view.
   */
  alone?: { mayLeaveOut: (sequence: number) => boolean };
  log: ProjectedLog;
  views: Pick<Views, 'checkpoint' | 'write' | 'readMany' | 'isOf' | 'drop'>;
  parked: Pick<ParkedEvents, 'park'>;
  signal: AbortSignal;
  /** After each change of mode and each batch. */
  onProgress?: (progress: Progress) => void;
  onParked: (event: ParkedEvent, reason: string) => void;
};

export type ProjectedLog = Pick<EventLog, 'follow' | 'lastSequence' | 'facts'>;

/**
 * Keeps a projection's views folded until the signal aborts.
 * @throws what is neither Unavailable nor an event's fault: a bug.
 */
export async function runProjection<View>(options: RunProjectionOptions<View>): Promise<void> {
  const { signal } = options;
  const projector = createProjector(options);
  let failures = 0;
  try {
    while (!signal.aborted) {
      const before = projector.progress.checkpoint;
      try {
        await followLog(projector);
        failures = 0;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        failures = projector.progress.checkpoint > before ? 1 : failures + 1;
        enter(projector, 'waiting-for-log');
        await delay(backoffMs(failures), undefined, { signal });
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/**
 * How far a projector is behind what it has seen, in sequences of the log; 0: not at all. While the
 * store is away it takes nothing more from the log, and `log.lastSequence` knows of more.
 */
export function lagOf({ seen, checkpoint }: Progress): number {
  return Math.max(0, seen - checkpoint);
}
