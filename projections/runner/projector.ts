import { UnknownEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { subjectOf } from '#events/subjects.ts';
import { Unavailable, WrittenByNewer } from '#src/kernel/errors.ts';
import { doubling, retry } from '#src/kernel/async/retry.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createStateReader, type StateReader } from '#src/kernel/event-store/load-state.ts';
import type { DeadLetterStore, NewDeadLetter } from '#src/kernel/messaging/dead-letters.ts';
import { completed, foldBatch, keyOf } from './fold.ts';
import { writesMax } from '../store/limits.ts';
import { projectionId, type Projection } from '../projection.ts';
import type { Batch, Views, ViewWrite } from '../store/views.ts';

/**
 * The projector's modes:
 *
 * - starting: reads the store's checkpoint. Views of another event store, or of more events than
 *   the event store has, are dropped. Then catching-up.
 * - catching-up: folds the events that were stored when it subscribed; the next batch is read while
 *   the store writes. Then live.
 * - live: folds new events. After 100 ms without an event of its subjects the checkpoint moves to
 *   the subscription's position, past the events of other subjects. While there is none it checks
 *   every 2 s that the store still has the checkpoint, every 4 s that the event store is still
 *   the same; all projectors of a process at the same moment.
 * - rewinding: the store or the event store has lost data (FLUSHALL, restart). Cached views are
 *   dropped, and it subscribes again from the store's checkpoint. Then catching-up.
 * - waiting-for-store: the read model is unavailable. The batch is kept and retried for ever, at
 *   most 1 s apart; the event store keeps later events. Then the mode before.
 * - waiting-for-log: the same for the event store. Then starting.
 * - waiting-for-newer: the next event, or the history of its aggregate, is of a type or version
 *   that this build does not know. All events before it are folded. A newer projector moves
 *   the checkpoint past it. Then starting.
 *
 * While a write is under way the subscription collects new events, so batches grow with the load.
 * In memory: one batch of at most 500 events; while catching up as many as change the views of one
 * write, at most 4,000; with `exclusive` three times 4,000. Any number of projectors may run at
 * once: the store's checkpoint decides whose batch counts.
 */
export type ProjectorMode =
  | 'starting'
  | 'catching-up'
  | 'live'
  | 'rewinding'
  | 'waiting-for-store'
  | 'waiting-for-log'
  | 'waiting-for-newer';

export type Progress = {
  mode: ProjectorMode;
  /** The views contain all events up to this sequence. */
  checkpoint: number;
  /** Highest sequence received from the event store. */
  seen: number;
  /** Events folded since the start. */
  folded: number;
};

/**
 * An event that cannot be read or folded. Its view keeps its state; the projection goes on once the
 * dead letter is stored. Reported again by every projector that meets it and after each rewind.
 */
export type ProjectionDeadLetter = { projection: string; sequence: number; subject: string };

export type RunProjectionOptions<View> = {
  projection: Projection<View>;
  /** The store's name; default: the projection's id. A rebuild folds into another store. */
  store?: string;
  /**
   * No other process reads or writes the store: batches may be larger than one write, and an event
   * that a later event of its aggregate supersedes is skipped if `canSkip` allows it.
   */
  exclusive?: { canSkip: (sequence: number) => boolean };
  eventStore: ProjectionSource;
  views: Pick<Views, 'checkpoint' | 'write' | 'isBuiltFrom' | 'drop'>;
  deadLetters: Pick<DeadLetterStore, 'add'>;
  signal: AbortSignal;
  /** Called after each change of mode and each batch. */
  onProgress?: (progress: Progress) => void;
  onDeadLetter: (event: ProjectionDeadLetter, reason: string) => void;
  /** Called once for each event that only a newer version of the service can read. */
  onUnknown?: (projection: string, reason: string) => void;
};

export type ProjectionSource = Pick<
  EventStore,
  'read' | 'subscribe' | 'history' | 'lastSequence' | 'info'
>;

/** Pause after a failure: 25 ms, doubled at each one after it, at most 1 s. */
export const BACKOFF_MS = [25, 1_000] as const;
/** Characters of a dead letter's reason: a schema's full error runs to pages. */
const REASON_MAX = 1_000;
/** Dead letters stored at once. */
const DEAD_LETTERS_AT_ONCE = 500;

/** The state of a projection's run. */
export type Projector = {
  options: Omit<RunProjectionOptions<unknown>, 'projection'>;
  /** The projection's own id. */
  id: string;
  /** The name of the store that it folds into. */
  store: string;
  subjects: readonly string[];
  /** One write for each view that the events change; those that cannot be folded are skipped. */
  fold: (events: readonly RecordedEvent[]) => ViewWrite[];
  /** The states of events that were written with another state version. */
  states: StateReader;
  /** The key of an event's view; null: the event changes no view, or its key is unknown. */
  keyOf: (event: RecordedEvent) => string | null;
  progress: Progress;
  /** Every event of its subjects up to here has been received, folded or skipped. */
  position: number;
  /** Dead letters that are not stored yet, by sequence. */
  pendingDeadLetters: Map<number, NewDeadLetter>;
  /** Skips an event: its dead letter is stored before the checkpoint passes the event. */
  skipEvent: (event: ProjectionDeadLetter, reason: string) => void;
};

export function createProjector<View>(options: RunProjectionOptions<View>): Projector {
  const { projection, onDeadLetter } = options;
  const id = projectionId(projection);
  const store = options.store ?? id;
  const pendingDeadLetters = new Map<number, NewDeadLetter>();

  function skipEvent(event: ProjectionDeadLetter, reason: string): void {
    const { sequence, subject } = event;
    pendingDeadLetters.set(sequence, {
      by: id,
      sequence,
      subject,
      reason: reason.slice(0, REASON_MAX),
    });
    onDeadLetter(event, reason);
  }
  function onFoldFailure({ sequence, aggregate, type }: RecordedEvent, reason: string): void {
    skipEvent({ projection: id, sequence, subject: subjectOf(aggregate, type) }, reason);
  }
  return {
    options,
    id,
    store,
    subjects: projection.subjects,
    fold: (events) => foldBatch(projection, events, onFoldFailure),
    states: createStateReader(options.eventStore),
    keyOf: (event) => keyOf(projection, event),
    progress: { mode: 'starting', checkpoint: 0, seen: 0, folded: 0 },
    position: 0,
    pendingDeadLetters,
    skipEvent,
  };
}

export function enterMode({ progress, options }: Projector, mode: ProjectorMode): void {
  if (progress.mode === mode) return;
  progress.mode = mode;
  options.onProgress?.({ ...progress });
}

/**
 * Folds and writes the events, and moves the checkpoint to the last one, at least to `atLeast`.
 * False: the store has lost the checkpoint.
 * @throws Unavailable('event-log') if a skipped event's dead letter cannot be stored; UnknownEvent
 * after the events before the first one whose history cannot be read here yet
 */
export async function advance(
  projector: Projector,
  events: readonly RecordedEvent[],
  atLeast: number,
): Promise<boolean> {
  const { options, progress } = projector;
  for (;;) {
    const after = progress.checkpoint;
    // The others were folded by another projector that was ahead.
    const wanted = events.filter((event) => event.sequence > after);
    const { events: fresh, unknown } = await completeAll(projector, wanted);
    const upTo = Math.max(after, unknown === null ? atLeast : 0, fresh.at(-1)?.sequence ?? 0);
    progress.seen = Math.max(progress.seen, upTo);
    const writes = projector.fold(fresh);
    await storeDeadLetters(projector);
    const checkpoint = await writeAll(projector, { after, upTo, writes });
    if (checkpoint < after) return false;
    if (checkpoint === upTo) progress.folded += fresh.length;
    else projector.states.clear();
    progress.checkpoint = checkpoint;
    options.onProgress?.({ ...progress });
    if (unknown !== null && checkpoint <= upTo) throw unknown;
    if (checkpoint >= upTo && unknown === null) return true;
  }
}

/**
 * The events with the states that their fold needs, up to the first one whose history cannot be
 * read here yet: `unknown`.
 */
async function completeAll(
  { states }: Projector,
  events: readonly RecordedEvent[],
): Promise<{ events: RecordedEvent[]; unknown: UnknownEvent | null }> {
  const complete: RecordedEvent[] = [];
  for (const event of events) {
    try {
      complete.push(await completed(states, event));
    } catch (error) {
      if (!(error instanceof WrittenByNewer)) throw error;
      const reason = `the history of event ${event.sequence}: ${String(error.cause)}`;
      return { events: complete, unknown: new UnknownEvent(reason) };
    }
  }
  return { events: complete, unknown: null };
}

/** Writes the batch in parts of `writesMax` views; the last part moves the checkpoint. */
async function writeAll(projector: Projector, batch: Batch): Promise<number> {
  const { options, store } = projector;
  const { after, upTo, writes } = batch;
  const write = (part: Batch) =>
    retryUntilAvailable(projector, () => options.views.write(store, part));
  let from = 0;
  for (; writes.length - from > writesMax; from += writesMax) {
    const some = writes.slice(from, from + writesMax);
    const checkpoint = await write({ after, upTo, writes: some, isPart: true });
    if (checkpoint !== after) return checkpoint;
  }
  return write({ after, upTo, writes: writes.slice(from) });
}

async function storeDeadLetters({
  pendingDeadLetters: pending,
  options,
}: Projector): Promise<void> {
  if (pending.size === 0) return;
  const events = [...pending.values()];
  for (let from = 0; from < events.length; from += DEAD_LETTERS_AT_ONCE) {
    const some = events.slice(from, from + DEAD_LETTERS_AT_ONCE);
    await Promise.all(some.map((event) => options.deadLetters.add(event)));
    for (const { sequence } of some) pending.delete(sequence);
  }
}

/** Retries the call while the read model is unavailable. @throws the signal's reason */
export async function retryUntilAvailable<T>(
  projector: Projector,
  ask: () => Promise<T>,
): Promise<T> {
  const { signal } = projector.options;
  const { mode } = projector.progress;
  signal.throwIfAborted();
  const options = {
    pauseMs: doubling(...BACKOFF_MS),
    isTransient: (error: unknown) => error instanceof Unavailable,
    onRetry: () => enterMode(projector, 'waiting-for-store'),
    signal,
  };
  const answer = await retry(options, ask);
  enterMode(projector, mode);
  return answer;
}
