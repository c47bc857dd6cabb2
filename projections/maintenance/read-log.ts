import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/errors.ts';
import type { ProjectionSource } from '../runner/projector.ts';

/** The event store sends stored events within milliseconds; after 10 s of silence it has failed. */
const SILENCE_MS = 10_000;

/**
 * Stored events of the subjects up to the sequence `upTo`, in batches. Unreadable events are left
 * out.
 * @throws Unavailable('event-log'); the signal's reason
 */
export async function* readLog(
  eventStore: ProjectionSource,
  subjects: readonly string[],
  upTo: number,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent[], void, void> {
  const end = Math.min(upTo, await eventStore.lastSequence(subjects));
  if (end === 0) return;
  const stop = new AbortController();
  let readTo = 0;
  const startTimer = () => setTimeout(() => stop.abort(), SILENCE_MS);
  let timer = startTimer();
  const batches = eventStore.subscribe({
    subjects,
    after: 0,
    signal: AbortSignal.any([signal, stop.signal]),
    onUnreadable({ sequence }) {
      readTo = Math.max(readTo, sequence);
      // No batch follows if this is the last event.
      if (readTo >= end) setTimeout(() => stop.abort(), 0);
    },
  });
  try {
    for await (const batch of batches) {
      clearTimeout(timer);
      const last = batch.at(-1)?.sequence ?? 0;
      readTo = Math.max(readTo, last);
      yield last > end ? batch.filter(({ sequence }) => sequence <= end) : batch;
      if (readTo >= end) return;
      timer = startTimer();
    }
  } finally {
    clearTimeout(timer);
  }
  signal.throwIfAborted();
  if (readTo < end) throw new Unavailable('event-log');
}
