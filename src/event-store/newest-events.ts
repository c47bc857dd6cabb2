import type { RecordedEvent } from '#events/events.ts';
import { isAmong, subjectOf } from '#events/subjects.ts';
import type { FollowOptions } from './event-store.ts';

/** An event that cannot be read. */
export type Poison = Parameters<FollowOptions['onMalformed']>[0];
type Kept = { sequence: number; subject: string; event: RecordedEvent } | Poison;

/** The newest events of the log, in its order, for readers each at a place of their own. */
export type NewestEvents = {
  /** @param poisons what could not be read of the same piece of the log */
  keep(batch: readonly RecordedEvent[], poisons: readonly Poison[]): void;
  /** All that has come after this sequence is here. */
  keptAfter(): number;
  /** Sequence of the newest that is here. */
  end(): number;
  hasAfter(sequence: number): boolean;
  /**
   * What has come after a place, as far as the subjects match and `batchMax` goes; `place` is how
   * far that is. What cannot be read is told, and not in the batch; the batch ends before it, so
   * that whoever is told has taken all that came before.
   */
  take(
    after: number,
    options: Pick<FollowOptions, 'subjects' | 'onMalformed' | 'batchMax'>,
  ): { batch: RecordedEvent[]; place: number };
};

const BATCH_MAX = 500;

/** @param keptMin so many are kept, and at most twice as many */
export function createNewestEvents(after: number, keptMin: number): NewestEvents {
  let items: Kept[] = [];
  let keptAfter = after;

  function keep(item: Kept): void {
    items.push(item);
    if (items.length < 2 * keptMin) return;
    keptAfter = items[keptMin - 1]?.sequence ?? keptAfter;
    items = items.slice(keptMin);
  }
  return {
    keep(batch, poisons) {
      const events = batch.map((event) => ({
        sequence: event.sequence,
        subject: subjectOf(event.aggregate, event.type),
        event,
      }));
      const all: Kept[] = [...events, ...poisons];
      for (const item of all.toSorted((one, other) => one.sequence - other.sequence)) keep(item);
    },
    keptAfter: () => keptAfter,
    end: () => items.at(-1)?.sequence ?? keptAfter,
    hasAfter: (sequence) => (items.at(-1)?.sequence ?? 0) > sequence,
    take(place, { subjects, onMalformed, batchMax = BATCH_MAX }) {
      const batch: RecordedEvent[] = [];
      let reached = place;
      for (let at = firstAfter(items, place); at < items.length; at += 1) {
        const item = items[at];
        if (item === undefined || batch.length >= batchMax) break;
        if (isAmong(subjects, item.subject)) {
          if ('event' in item) batch.push(item.event);
          else if (batch.length > 0) break;
          else onMalformed(item);
        }
        reached = item.sequence;
      }
      return { batch, place: reached };
    },
  };
}

/** Index of the first item behind a sequence, by halving. */
function firstAfter(items: readonly Kept[], sequence: number): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((items[middle]?.sequence ?? 0) > sequence) high = middle;
    else low = middle + 1;
  }
  return low;
}
