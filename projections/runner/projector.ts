import { setTimeout as delay } from 'node:timers/promises';
import type { RecordedEvent } from '#events/events.ts';
import { subjectOf } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import type { Parked } from '#src/messaging/dead-letters.ts';
import { createFolder, keyOf, type Folder } from './fold.ts';
import type {
  ParkedEvent,
  Progress,
  ProjectorMode,
  RunProjectionOptions,
} from './run-projection.ts';
import { writesMax } from '../store/limits.ts';
import { idOf } from '../projection.ts';
import type { Batch } from '../store/views.ts';

const BACKOFF_MS_MIN = 25;
const BACKOFF_MS_MAX = 1000;
/** A schema's whole complaint runs to pages. */
const REASON_MAX = 1_000;
const PARKED_AT_ONCE = 500;

/** A projection's run: what it works with, and where it stands. */
export type Projector = {
  options: Omit<RunProjectionOptions<unknown>, 'projection'>;
  /** The projection's own id. */
  id: string;
  /** The name of the store that it folds into. */
  store: string;
  subjects: readonly string[];
  folder: Folder;
  /** The key of an event's view; null where there is none, or that cannot be told. */
  keyOf: (event: RecordedEvent) => string | null;
  progress: Progress;
  /** Highest sequence of an event that could not be read: no batch will have it. */
  unreadable: number;
  /** Passed over, and not yet kept as such; by sequence. */
  parking: Map<number, Parked>;
  /** Passes an event over: before the checkpoint moves beyond it that will have been kept. */
  passOver: (event: ParkedEvent, reason: string) => void;
};

export function createProjector<View>(options: RunProjectionOptions<View>): Projector {
  const { projection, views, onParked } = options;
  const id = idOf(projection);
  const store = options.store ?? id;
  const parking = new Map<number, Parked>();

  function passOver(event: ParkedEvent, reason: string): void {
    const { sequence, subject } = event;
    parking.set(sequence, { by: id, sequence, subject, reason: reason.slice(0, REASON_MAX) });
    onParked(event, reason);
  }
  function onPoison({ sequence, aggregate, type }: RecordedEvent, reason: string): void {
    passOver({ projection: id, sequence, subject: subjectOf(aggregate, type) }, reason);
  }
  return {
    options,
    id,
    store,
    subjects: projection.subjects,
    folder: createFolder(projection, store, views, onPoison),
    keyOf: (event) => keyOf(projection, event),
    progress: { mode: 'starting', checkpoint: 0, seen: 0, folded: 0 },
    unreadable: 0,
    parking,
    passOver,
  };
}

export function enter({ progress, options }: Projector, mode: ProjectorMode): void {
  if (progress.mode === mode) return;
  progress.mode = mode;
  options.onProgress?.({ ...progress });
}

/**
 * Folds and writes the events, and moves the checkpoint to `atLeast` where they do not reach it.
 * False: the store has lost the checkpoint.
 * @throws Unavailable('event-log') where an event had to be passed over and that cannot be kept
 */
export async function advance(
  projector: Projector,
  events: readonly RecordedEvent[],
  atLeast: number,
): Promise<boolean> {
  const { options, folder, progress } = projector;
  for (;;) {
    const after = progress.checkpoint;
    // A rival that was ahead has folded the others.
    const fresh = events.filter((event) => event.sequence > after);
    const upTo = Math.max(after, atLeast, fresh.at(-1)?.sequence ?? 0);
    progress.seen = Math.max(progress.seen, upTo);
    const folded = await patiently(projector, () => folder.fold(after, fresh));
    await park(projector);
    const standsAt =
      'standsAt' in folded
        ? folded.standsAt
        : await writeAll(projector, { after, upTo, writes: folded.writes });
    if (standsAt < after) return false;
    if ('writes' in folded && standsAt === upTo) {
      folder.keep();
      progress.folded += fresh.length;
    } else folder.forget();
    progress.checkpoint = standsAt;
    options.onProgress?.({ ...progress });
    if (standsAt >= upTo) return true;
  }
}

/** The last of the parts moves the checkpoint; the others are there by then. */
async function writeAll(projector: Projector, batch: Batch): Promise<number> {
  const { options, store } = projector;
  const { after, upTo, writes } = batch;
  const write = (part: Batch) => patiently(projector, () => options.views.write(store, part));
  let from = 0;
  for (; writes.length - from > writesMax; from += writesMax) {
    const some = writes.slice(from, from + writesMax);
    const standsAt = await write({ after, upTo, writes: some, isPart: true });
    if (standsAt !== after) return standsAt;
  }
  return write({ after, upTo, writes: writes.slice(from) });
}

async function park({ parking, options }: Projector): Promise<void> {
  if (parking.size === 0) return;
  const events = [...parking.values()];
  for (let from = 0; from < events.length; from += PARKED_AT_ONCE) {
    const some = events.slice(from, from + PARKED_AT_ONCE);
    await Promise.all(some.map((event) => options.parked.park(event)));
    for (const { sequence } of some) parking.delete(sequence);
  }
}

/** Asks the store until it answers. @throws the signal's reason. */
export async function patiently<T>(projector: Projector, ask: () => Promise<T>): Promise<T> {
  const { signal } = projector.options;
  const { mode } = projector.progress;
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    try {
      const answer = await ask();
      enter(projector, mode);
      return answer;
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      enter(projector, 'waiting-for-store');
      await delay(backoffMs(failures), undefined, { signal });
    }
  }
}

/** 25 ms after the first failure, doubled at each one after it, at most 1 s. */
export function backoffMs(failures: number): number {
  return Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** Math.min(failures - 1, 10));
}
