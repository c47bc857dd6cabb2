import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/errors.ts';
import { writesMax } from '../store/limits.ts';
import { advance, enter, patiently, type Projector } from './projector.ts';

/** Also how late a FLUSHALL is noticed while no event comes. */
const IDLE_CHECK_MS = 500;
/** Events in memory while catching up, some kilobytes each. */
const GATHERED_MAX = 4_000;
/** A log that was made anew is noticed by then while no event comes: after 2 s. */
const PAUSES_TO_LOG_CHECK = 4;

/**
 * Returns when the store or the log has lost what the checkpoint stands for, or when the signal
 * aborts.
 * @throws Unavailable('event-log')
 */
export async function followLog(projector: Projector): Promise<void> {
  const { options, subjects, folder, progress } = projector;
  if (progress.mode !== 'rewinding') enter(projector, 'starting');
  folder.forget();
  await takeUp(projector);
  const stop = new AbortController();
  const follower = options.log.follow({
    subjects,
    after: progress.checkpoint,
    signal: AbortSignal.any([options.signal, stop.signal]),
    batchMax: options.alone === undefined ? writesMax : GATHERED_MAX,
    ...leavingOut(projector),
    onMalformed({ sequence, subject, reason }) {
      projector.unreadable = Math.max(projector.unreadable, sequence);
      projector.passOver({ projection: projector.id, sequence, subject }, reason);
    },
  });
  const batches = follower[Symbol.asyncIterator]();
  try {
    const target = await options.log.lastSequence(subjects);
    await foldAll(projector, batches, target);
  } finally {
    stop.abort();
    // Not awaited: a follower that is slow to stop has nothing more to give.
    batches.return?.().catch(ignore);
  }
}

/** What is left out counts as folded: the later event of its aggregate has it in its state. */
function leavingOut({ options: { alone }, progress }: Projector) {
  if (alone === undefined) return {};
  return {
    mayLeaveOut(sequence: number) {
      const isLeftOut = sequence > progress.checkpoint && alone.mayLeaveOut(sequence);
      if (isLeftOut) progress.folded += 1;
      return isLeftOut;
    },
  };
}

/** Goes on from the store's checkpoint, if that is of this log; else from the log's begin. */
async function takeUp(projector: Projector): Promise<void> {
  const { options, store, progress } = projector;
  progress.checkpoint = await patiently(projector, () => options.views.checkpoint(store));
  // Asked after the checkpoint was read: the log only grows.
  const { id, lastSequence } = await options.log.facts();
  const isOfLog = await patiently(projector, () => options.views.isOf(store, id));
  if (isOfLog && progress.checkpoint <= lastSequence) return;
  await patiently(projector, () => options.views.drop(store));
  await patiently(projector, () => options.views.isOf(store, id));
  Object.assign(progress, { checkpoint: 0, seen: 0 });
  projector.unreadable = 0;
}

/** Returns when what the checkpoint stands for was lost, or when the signal aborts. */
async function foldAll(
  projector: Projector,
  batches: AsyncIterator<RecordedEvent[]>,
  target: number,
): Promise<void> {
  const { options, progress } = projector;
  let next = batches.next();
  let unreadableBefore = 0;
  let pauses = 0;
  const gathered = createGathered(projector);
  let writing = Promise.resolve(true);
  try {
    while (!options.signal.aborted) {
      const isThere = Math.max(progress.checkpoint, projector.unreadable) >= target;
      enter(projector, isThere ? 'live' : 'catching-up');
      const batch = await within(next, IDLE_CHECK_MS);
      let isKept = true;
      if (batch === 'idle') {
        isKept = await writing;
        // What could not be read is behind us once a whole pause has brought nothing before it.
        isKept &&= await advance(projector, gathered.take(), unreadableBefore);
        unreadableBefore = projector.unreadable;
        pauses += 1;
        if (pauses % PAUSES_TO_LOG_CHECK === 0) isKept &&= await isSameLog(projector);
      } else if (batch.done === true) {
        if (options.signal.aborted) return;
        throw new Unavailable('event-log', 'the follower ended by itself');
      } else {
        // The log is read while the store writes. Where events come one by one they are rather left
        // to become a batch meanwhile.
        const isMore = (batch.value.at(-1)?.sequence ?? 0) < target;
        if (isMore) next = seenLater(batches.next());
        for (const piece of gathered.add(batch.value, isMore)) {
          isKept &&= await writing;
          if (isKept) writing = seenLater(advance(projector, piece, 0));
        }
        if (!isMore) {
          isKept &&= await writing;
          next = batches.next();
        }
      }
      if (!isKept) return enter(projector, 'rewinding');
    }
  } finally {
    // What is under way moves the checkpoint: whoever follows next has to find it at rest.
    await writing.catch(ignore);
  }
}

/** Events that wait for others to be written with them. */
type Gathered = {
  /** The pieces that are to be written now: as many events as change the views of one batch. */
  add(events: readonly RecordedEvent[], isMore: boolean): RecordedEvent[][];
  /** What is left. */
  take(): RecordedEvent[];
};

/** Where more is to come, views that have just changed are likely to change again. */
function createGathered({ keyOf, options }: Projector): Gathered {
  const viewsMax = options.alone === undefined ? writesMax : GATHERED_MAX;
  let events: RecordedEvent[] = [];
  let keys = new Set<string>();

  function take(): RecordedEvent[] {
    const taken = events;
    events = [];
    keys = new Set();
    return taken;
  }
  return {
    take,
    add(more, isMore) {
      const pieces: RecordedEvent[][] = [];
      for (const event of more) {
        const key = keyOf(event);
        const isNew = key !== null && !keys.has(key);
        if (isNew && keys.size === viewsMax) pieces.push(take());
        if (isNew) keys.add(key);
        events.push(event);
      }
      if (events.length > 0 && (!isMore || events.length >= GATHERED_MAX)) pieces.push(take());
      return pieces;
    },
  };
}

/** Its failure is seen by whoever awaits it later; or nobody does, and it is over. */
function seenLater<T>(work: Promise<T>): Promise<T> {
  work.catch(ignore);
  return work;
}

async function isSameLog(projector: Projector): Promise<boolean> {
  const { options, store, progress } = projector;
  const { id, lastSequence } = await options.log.facts();
  if (progress.checkpoint > lastSequence) return false;
  return patiently(projector, () => options.views.isOf(store, id));
}

function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T | 'idle'> {
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(resolve, timeoutMs, 'idle');
    promise.then(resolve, reject).finally(() => clearTimeout(timeout));
  });
}

function ignore(): void {}
