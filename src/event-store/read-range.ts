import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/errors.ts';
import type { EventLog, FollowOptions } from './event-store.ts';

/** The log sends what it has within milliseconds; after so long without a word it is away. */
const SILENCE_MS = 5_000;

/** From behind `after` (default 0) up to and including `upTo`, or to what is the end by now. */
export type Range = Pick<FollowOptions, 'subjects' | 'onMalformed' | 'batchMax' | 'mayLeaveOut'> & {
  after?: number;
  upTo: number;
};

/**
 * The events of a piece of the log, oldest first, in batches; ends by itself at the last of them.
 * @throws Unavailable where the log says nothing for 5 s
 */
export async function* readRange(
  log: EventLog,
  { subjects, onMalformed, after = 0, upTo, ...options }: Range,
): AsyncGenerator<RecordedEvent[], void, void> {
  // A follower waits for what comes: it has to know which event is the last to wait for.
  const end = upTo <= after ? 0 : await log.lastSequence(subjects);
  if (end <= after) return;
  const last = Math.min(end, upTo);
  const stop = new AbortController();
  let readTo = after;
  let timer = setTimeout(() => stop.abort(), SILENCE_MS);
  const batches = log.follow({
    ...options,
    subjects,
    after,
    signal: stop.signal,
    onMalformed(poison) {
      if (poison.sequence <= last) onMalformed(poison);
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
