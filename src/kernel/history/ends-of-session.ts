import { isOf, type RecordedOf, type RefOf } from '#events/events.ts';
import { streamFilter } from '#events/subjects.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { withState } from '#src/kernel/event-store/load-state.ts';
import { refuseUnreadable } from '#src/kernel/event-store/unreadable.ts';

/** The first and the newest events of a session that are read at most. */
export const FIRST_MAX = 200;
export const NEWEST_MAX = 300;
/** So many of the newest are enough. */
const NEWEST_MIN = 100;
/** How far back from the newest event they are looked for, in events of all aggregates. */
const SPANS = [1_000, 8_000, 64_000];

export type Ends = {
  events: RecordedOf<'session'>[];
  /** False: events between the first and the newest were left out. */
  isWhole: boolean;
};

/**
 * A session's events; of a long session the first and the newest, so that the read is bounded
 * however often the session was extended or used.
 * @param upTo the session's last event
 * @param signal once it aborts, events may be missing
 * @throws WrittenByNewer
 */
export async function readEnds(
  eventStore: EventStore,
  session: RefOf<'session'>,
  upTo: number,
  signal?: AbortSignal,
): Promise<Ends> {
  const first: RecordedOf<'session'>[] = [];
  for await (const event of eventStore.history<'session'>(session)) {
    if (event.sequence > upTo || signal?.aborted === true) break;
    first.push(event);
    if (first.length === FIRST_MAX) break;
  }
  const place = first.at(-1)?.sequence ?? 0;
  if (first.length < FIRST_MAX || place >= upTo) return { events: first, isWhole: true };
  let newest: RecordedOf<'session'>[] = [];
  for (const span of SPANS) {
    const after = Math.max(place, upTo - span);
    const read = await readNewest(eventStore, session, { after, upTo, ...(signal && { signal }) });
    newest = read.events;
    if (after === place && read.isWhole) return { events: [...first, ...newest], isWhole: true };
    if (newest.length >= NEWEST_MIN || after === place) break;
  }
  const [oldest, ...others] = newest;
  // Its state cannot be folded from the one before the gap.
  const known = oldest === undefined ? [] : [await withState<'session'>(eventStore, oldest)];
  return { events: [...first, ...known, ...others], isWhole: false };
}

async function readNewest(
  eventStore: EventStore,
  session: RefOf<'session'>,
  range: { after: number; upTo: number; signal?: AbortSignal },
): Promise<Ends> {
  const newest: RecordedOf<'session'>[] = [];
  let isWhole = true;
  const subjects = [streamFilter(session)];
  const options = { ...range, subjects, includesArchive: true, onUnreadable: refuseUnreadable };
  for await (const batch of eventStore.read(options))
    for (const event of batch) {
      if (!isOf('session', event)) continue;
      newest.push(event);
      if (newest.length <= NEWEST_MAX) continue;
      newest.shift();
      isWhole = false;
    }
  return { events: newest, isWhole };
}
