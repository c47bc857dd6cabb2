import type { RecordedEvent } from '#events/events.ts';
import { matchesAnyFilter, subjectOf } from '#events/subjects.ts';
import type { SubscribeOptions, UnreadableEvent } from './event-store.ts';

type Kept = { sequence: number; subject: string; event: RecordedEvent } | UnreadableEvent;

/**
 * A buffer of the newest events in the store's order, for readers each at a position of their own.
 */
export type RecentEvents = {
  /** @param poisons the unreadable events of the same range */
  keep(batch: readonly RecordedEvent[], poisons: readonly UnreadableEvent[]): void;
  /** All events after this sequence are in the buffer. */
  keptAfter(): number;
  /** Sequence of the newest event in the buffer. */
  end(): number;
  hasAfter(sequence: number): boolean;
  /**
   * Takes the events after a position that match the subjects, at most `batchMax`; `place` is the
   * position afterwards. An unreadable event is reported to `onUnreadable` and is not in the batch.
   * The batch ends before it, so that the reader has taken all earlier events when it gets the
   * report.
   */
  take(
    after: number,
    options: Pick<SubscribeOptions, 'subjects' | 'onUnreadable' | 'batchMax'>,
  ): { batch: RecordedEvent[]; place: number };
};

const BATCH_MAX = 500;

/** @param keptMin events that are kept at least; at most twice as many are kept */
export function createRecentEvents(after: number, keptMin: number): RecentEvents {
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
    take(place, { subjects, onUnreadable, batchMax = BATCH_MAX }) {
      const batch: RecordedEvent[] = [];
      let reached = place;
      for (let at = firstAfter(items, place); at < items.length; at += 1) {
        const item = items[at];
        if (item === undefined || batch.length >= batchMax) break;
        if (matchesAnyFilter(subjects, item.subject)) {
          if ('event' in item) batch.push(item.event);
          else if (batch.length > 0) break;
          else onUnreadable(item);
        }
        reached = item.sequence;
      }
      return { batch, place: reached };
    },
  };
}

/** Index of the first item after a sequence, by binary search. */
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
