import { UnknownEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { createNotifier } from '#src/kernel/async/notifier.ts';

/** A batch, the end, or the event after it if that is one that this build does not know. */
type Batch = IteratorResult<RecordedEvent[], void> | UnknownEvent;

/**
 * A subscription's batches, one at a time. A wait that ends without one leaves nothing behind: some
 * projections get no event for weeks, and a race with the batch's promise would leave its end of
 * the race at that promise each time.
 */
export type Batches = {
  /** Asks for the next batch; the one before has been taken. */
  ask(): void;
  /** The batch asked for, if it arrives within `ms`. */
  next(ms: number): Promise<Batch | 'idle'>;
  /** The same, or 'moved' at the next call of `moved`. */
  nextOrMove(ms: number): Promise<Batch | 'idle' | 'moved'>;
  /** The subscription's position has changed. */
  moved(): void;
};

export function createBatches(
  iterator: AsyncIterator<RecordedEvent[], void>,
  signal: AbortSignal,
): Batches {
  const arrivals = createNotifier();
  let arrived: Promise<Batch> | null = null;
  let waitsForMove = false;
  let hasMoved = false;

  return {
    ask() {
      arrived = null;
      const next = nextOf(iterator);
      const settled = () => {
        arrived = next;
        arrivals.notify();
      };
      next.then(settled, settled);
    },
    async next(ms) {
      if (arrived === null) await arrivals.wait(signal, ms);
      return arrived ?? 'idle';
    },
    async nextOrMove(ms) {
      [waitsForMove, hasMoved] = [true, false];
      if (arrived === null) await arrivals.wait(signal, ms);
      waitsForMove = false;
      return arrived ?? (hasMoved ? 'moved' : 'idle');
    },
    moved() {
      hasMoved = true;
      if (waitsForMove) arrivals.notify();
    },
  };
}

function nextOf(iterator: AsyncIterator<RecordedEvent[], void>): Promise<Batch> {
  return iterator.next().catch((error: unknown) => {
    if (error instanceof UnknownEvent) return error;
    throw error;
  });
}
