import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/errors.ts';
import type { EventStore, SubscribeOptions } from './event-store.ts';

/**
 * The event store sends existing events within milliseconds. After this long a silence it counts as
 * unavailable.
 */
const SILENCE_MS = 5_000;

/**
 * From after `after` (default 0) up to and including `upTo` (default: the last event at the time of
 * the call).
 */
export type Range = Pick<SubscribeOptions, 'subjects' | 'onUnreadable' | 'batchMax' | 'canSkip'> & {
  after?: number;
  upTo: number;
};

/**
 * The events of a range, oldest first, in batches; ends after the last of them.
 * @throws Unavailable if the event store is silent for 5 s
 */
export async function* readRange(
  eventStore: EventStore,
  { subjects, onUnreadable, after = 0, upTo, ...options }: Range,
): AsyncGenerator<RecordedEvent[], void, void> {
  // A subscription waits for further events, so the reader must know which event is the last one to
  // wait for.
  const end = upTo <= after ? 0 : await eventStore.lastSequence(subjects);
  if (end <= after) return;
  const last = Math.min(end, upTo);
  const stop = new AbortController();
  let readTo = after;
  let timer = setTimeout(() => stop.abort(), SILENCE_MS);
  const batches = eventStore.subscribe({
    ...options,
    subjects,
    after,
    signal: stop.signal,
    onUnreadable(poison) {
      if (poison.sequence <= last) onUnreadable(poison);
      readTo = Math.max(readTo, poison.sequence);
      if (readTo >= last) stop.abort();
    },
  });
  try {
    for await (const batch of batches) {
      clearTimeout(timer);
      readTo = Math.max(readTo, batch.at(-1)?.sequence ?? 0);
      const wanted = batch.filter(({ sequence }) => sequence <= last);
      if (wanted.length > 0) yield wanted;
      if (readTo >= last) return;
      timer = setTimeout(() => stop.abort(), SILENCE_MS);
    }
    if (readTo < last) throw new Unavailable('event-log');
  } finally {
    clearTimeout(timer);
  }
}
