import { UnknownEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { untilTickOf } from '#src/kernel/async/ticks.ts';
import { stopAtUnknown } from '#src/kernel/event-store/unreadable.ts';
import { writesMax } from '../store/limits.ts';
import { createBatches, type Batches } from './batches.ts';
import { advance, enterMode, retryUntilAvailable, type Projector } from './projector.ts';

/**
 * After this long without an event the checkpoint moves to the subscription's position. A reader
 * that waits for the end of the event store waits for it, when the last events there are of other
 * subjects.
 */
const PAUSE_MS = 100;
/** The same while catching up: the end may have been reached without a further event. */
const CATCH_UP_PAUSE_MS = 20;
/**
 * Between checks of the store's checkpoint, which detect a FLUSHALL. Until then no read is wrong:
 * without a checkpoint it is refused.
 */
const CHECK_MS = 2_000;
/** Checks in a row without an event until the event store's identity is checked, too: 4 s. */
const CHECKS_TO_STORE_CHECK = 2;
/** Events in memory while catching up, some kilobytes each. */
const BUFFERED_MAX = 4_000;

/**
 * Subscribes from the store's checkpoint and folds. Returns when the store or the event store has
 * lost events up to the checkpoint, or when the signal aborts.
 * @throws Unavailable('event-log'); UnknownEvent at an event that this build does not know
 */
export async function subscribeProjector(projector: Projector): Promise<void> {
  const { options, subjects, progress } = projector;
  if (progress.mode !== 'rewinding') enterMode(projector, 'starting');
  projector.states.clear();
  const after = await resumeFromCheckpoint(projector);
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const subscription = options.eventStore.subscribe({
    subjects,
    after,
    signal,
    batchMax: options.exclusive === undefined ? writesMax : BUFFERED_MAX,
    ...skipOptions(projector),
    onPosition(sequence) {
      projector.position = sequence;
      if (sequence > progress.checkpoint) batches.moved();
    },
    onUnreadable(poison) {
      const { sequence, subject, reason } = poison;
      stopAtUnknown(poison);
      projector.skipEvent({ projection: projector.id, sequence, subject }, reason);
    },
  });
  const iterator = subscription[Symbol.asyncIterator]();
  const batches = createBatches(iterator, signal);
  try {
    const target = await options.eventStore.lastSequence();
    await foldBatches(projector, batches, target);
  } finally {
    stop.abort();
    // Not awaited: a subscription that is slow to stop delivers nothing more.
    iterator.return?.().catch(ignore);
  }
}

/** A skipped event counts as folded: a later event of its aggregate carries its state. */
function skipOptions({ options: { exclusive }, progress }: Projector) {
  if (exclusive === undefined) return {};
  return {
    canSkip(sequence: number) {
      const isLeftOut = sequence > progress.checkpoint && exclusive.canSkip(sequence);
      if (isLeftOut) progress.folded += 1;
      return isLeftOut;
    },
  };
}

/**
 * Resumes from the store's checkpoint. Views of another event store are dropped, and so are those
 * that lack events which are no longer in the event store: both start from its first event.
 * @returns the sequence after which to subscribe
 */
async function resumeFromCheckpoint(projector: Projector): Promise<number> {
  const { options, store, progress } = projector;
  projector.position = 0;
  progress.checkpoint = await retryUntilAvailable(projector, () => options.views.checkpoint(store));
  // Read after the checkpoint: the event store's end only grows.
  const { id, firstSequence, lastSequence } = await options.eventStore.info();
  const isOfEventStore = await retryUntilAvailable(projector, () =>
    options.views.isBuiltFrom(store, id),
  );
  const { checkpoint } = progress;
  const goneUpTo = firstSequence - 1;
  const lacksEvents = checkpoint > 0 && checkpoint < goneUpTo;
  if (isOfEventStore && checkpoint <= lastSequence && !lacksEvents)
    return Math.max(checkpoint, goneUpTo);
  await retryUntilAvailable(projector, () => options.views.drop(store));
  await retryUntilAvailable(projector, () => options.views.isBuiltFrom(store, id));
  Object.assign(progress, { checkpoint: 0, seen: 0 });
  return goneUpTo;
}

/** Returns when events up to the checkpoint were lost, or when the signal aborts. */
async function foldBatches(projector: Projector, batches: Batches, target: number): Promise<void> {
  const { options, progress } = projector;
  batches.ask();
  let checks = 0;
  const buffer = createEventBuffer(projector);
  let writing = Promise.resolve(true);
  try {
    while (!options.signal.aborted) {
      const isThere = progress.checkpoint >= target;
      enterMode(projector, isThere ? 'live' : 'catching-up');
      const isBehind = !isThere || projector.position > progress.checkpoint;
      const batch = isBehind
        ? await batches.next(isThere ? PAUSE_MS : CATCH_UP_PAUSE_MS)
        : await batches.nextOrMove(untilTickOf(CHECK_MS));
      let isIntact = true;
      if (batch instanceof UnknownEvent) {
        // The events before it may still be in the buffer.
        isIntact = await writing;
        if (isIntact) isIntact = await advance(projector, buffer.flush(), 0);
        if (isIntact) throw batch;
      } else if (batch === 'moved') {
        continue;
      } else if (batch === 'idle') {
        isIntact = await writing;
        // Every batch up to the position has been handled: no further one has arrived.
        if (isBehind) isIntact &&= await advance(projector, buffer.flush(), projector.position);
        else {
          checks += 1;
          if (checks % CHECKS_TO_STORE_CHECK === 0) isIntact &&= await isSameEventStore(projector);
          isIntact &&= await hasCheckpoint(projector);
        }
      } else if (batch.done === true) {
        if (options.signal.aborted) return;
        throw new Unavailable('event-log', 'the subscription ended');
      } else {
        // While catching up, the next batch is read while the store writes. Live, the read waits,
        // so that events collect to a batch meanwhile.
        const isMore = (batch.value.at(-1)?.sequence ?? 0) < target;
        if (isMore) batches.ask();
        for (const piece of buffer.add(batch.value, isMore)) {
          isIntact &&= await writing;
          if (isIntact) writing = markHandled(advance(projector, piece, 0));
        }
        if (!isMore) {
          isIntact &&= await writing;
          batches.ask();
        }
      }
      if (!isIntact) return enterMode(projector, 'rewinding');
    }
  } finally {
    // A pending write moves the checkpoint: the next subscription must start from its result.
    await writing.catch(ignore);
  }
}

/** Collects events until there are enough for one write. */
type EventBuffer = {
  /** Returns the batches to write now: as many events as change the views of one write. */
  add(events: readonly RecordedEvent[], isMore: boolean): RecordedEvent[][];
  /** Returns the remaining events. */
  flush(): RecordedEvent[];
};

/** While catching up, full buffers save writes: recently changed views often change again. */
function createEventBuffer({ keyOf, options }: Projector): EventBuffer {
  const viewsMax = options.exclusive === undefined ? writesMax : BUFFERED_MAX;
  let events: RecordedEvent[] = [];
  let keys = new Set<string>();

  function take(): RecordedEvent[] {
    const taken = events;
    events = [];
    keys = new Set();
    return taken;
  }
  return {
    flush: take,
    add(more, isMore) {
      const pieces: RecordedEvent[][] = [];
      for (const event of more) {
        const key = keyOf(event);
        const isNew = key !== null && !keys.has(key);
        if (isNew && keys.size === viewsMax) pieces.push(take());
        if (isNew) keys.add(key);
        events.push(event);
      }
      if (events.length > 0 && (!isMore || events.length >= BUFFERED_MAX)) pieces.push(take());
      return pieces;
    },
  };
}

/** Marks the promise as handled; a later `await` still sees the rejection. */
function markHandled<T>(work: Promise<T>): Promise<T> {
  work.catch(ignore);
  return work;
}

/** Whether the store still has the checkpoint; one that another projector has moved is followed. */
async function hasCheckpoint(projector: Projector): Promise<boolean> {
  const { options, store, progress } = projector;
  const stored = await retryUntilAvailable(projector, () => options.views.checkpoint(store));
  return stored === progress.checkpoint || advance(projector, [], 0);
}

async function isSameEventStore(projector: Projector): Promise<boolean> {
  const { options, store, progress } = projector;
  const { id, lastSequence } = await options.eventStore.info();
  if (progress.checkpoint > lastSequence) return false;
  return retryUntilAvailable(projector, () => options.views.isBuiltFrom(store, id));
}

function ignore(): void {}
