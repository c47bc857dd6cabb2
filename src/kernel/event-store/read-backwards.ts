import type { RecordedEvent } from '#events/events.ts';
import type { EventStore } from './event-store.ts';
import { refuseUnknown } from './unreadable.ts';

/** Sequences that the first step back covers; each further one covers four times as many. */
const STEP = 500;
const STEPS_MAX = 8;

/**
 * The newest of the events that `pick` returns, up to a sequence, newest first. The store reads
 * forwards only, so ever longer ranges are read, from the end, at most eleven million events;
 * `reached` is the last sequence that was not read, 0 at the beginning.
 * @throws WrittenByNewer; Unavailable
 */
export async function readBackwards<Found extends { sequence: number }>(
  eventStore: EventStore,
  { subjects, upTo, limit }: { subjects: readonly string[]; upTo: number; limit: number },
  pick: (event: RecordedEvent) => Found | null,
): Promise<{ found: Found[]; reached: number }> {
  const { firstSequence } = await eventStore.info();
  const found: Found[] = [];
  let end = upTo;
  for (let step = 0; step < STEPS_MAX && end >= firstSequence; step += 1) {
    const after = Math.max(firstSequence - 1, end - STEP * 4 ** step);
    const some: Found[] = [];
    const range = { subjects, after, upTo: end, onUnreadable: refuseUnknown };
    for await (const batch of eventStore.read(range))
      for (const event of batch) {
        const picked = pick(event);
        if (picked !== null) some.push(picked);
        // Of a range with many more only the newest are of use.
        if (some.length > limit) some.shift();
      }
    found.push(...some.toReversed());
    const last = found[limit - 1];
    if (last !== undefined) {
      const isOldest = last.sequence <= firstSequence;
      return { found: found.slice(0, limit), reached: isOldest ? 0 : last.sequence - 1 };
    }
    end = after;
  }
  return { found, reached: end >= firstSequence ? end : 0 };
}
