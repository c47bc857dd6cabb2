import type { RecordedEvent } from '#events/events.ts';
import { isAmong, subjectOf } from '#events/subjects.ts';
import type { FollowOptions } from './event-log.ts';

type Poison = Parameters<FollowOptions['onMalformed']>[0];
type Kept = { sequence: number; subject: string; event: RecordedEvent } | Poison;

/** The newest events of the log, in its order, for readers each at a place of their own. */
export type NewestEvents = {
  keep(batch: readonly RecordedEvent[]): void;
  keepPoison(poison: Poison): void;
  /** All that has come after this sequence is here. */
  keptAfter(): number;
  hasAfter(sequence: number): boolean;
  /**
   * What has come after a place, as far as the subjects match and `batchMax` goes; `place` is how
   * far that is. What cannot be read is told, and not in the batch.
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
    keep(batch) {
      for (const event of batch)
        keep({
          sequence: event.sequence,
          subject: subjectOf(event.aggregate, event.type),
          event,
        });
    },
    keepPoison: keep,
    keptAfter: () => keptAfter,
    hasAfter: (sequence) => (items.at(-1)?.sequence ?? 0) > sequence,
    take(place, { subjects, onMalformed, batchMax = BATCH_MAX }) {
      const batch: RecordedEvent[] = [];
      let reached = place;
      for (let at = firstAfter(items, place); at < items.length; at += 1) {
        const item = items[at];
        if (item === undefined || batch.length >= batchMax) break;
        reached = item.sequence;
        if (!isAmong(subjects, item.subject)) continue;
        if ('event' in item) batch.push(item.event);
        else onMalformed(item);
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
