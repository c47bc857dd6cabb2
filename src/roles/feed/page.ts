import { UnknownEvent } from '#events/codec.ts';
import { toPublicEvent } from '#events/public-event.ts';
import type { FairSlots } from '#src/kernel/async/fair-slots.ts';
import { Unavailable, WrittenByNewer } from '#src/kernel/errors.ts';
import type { EventStore, UnreadableEvent } from '#src/kernel/event-store/event-store.ts';
import { isMatch, subjectsOf, type Subscription } from './subscription.ts';

/** Events that are read for one page, whether they match or not. */
const SCAN_MAX = 1_000;
/** A page of events with large states ends before this; an event has at most 1 MB. */
const LENGTH_MAX = 4 * 1024 * 1024;
const BATCH_MAX = 100;
/** Sequences that are read in one go at first; each further go has twice as many. */
export const SPAN = 50_000;
/** After a go that ends later than this, the page ends too: what matches may be far away. */
const TURN_MS = 1_000;

export type PageRequest = {
  subscription: Subscription;
  /** The sequence after which the page begins. */
  after: number;
  limit: number;
  signal: AbortSignal;
};

/**
 * CloudEvents as JSON texts; all matching events up to `next` are on this page or before it.
 * `isMore`: more may be stored already.
 */
export type EventPage = { events: string[]; next: number; isMore: boolean };

export type PageDependencies = {
  eventStore: EventStore;
  readSlots: FairSlots;
  /** @throws UnknownEvent, which ends the page */
  onUnreadable: (poison: UnreadableEvent) => void;
  /** Monotonic, in ms. */
  now: () => number;
};

/**
 * The stored events after a sequence, in public form. It may have fewer than `limit`, or none,
 * although more follow: the next page goes on.
 * @param end the event store's last sequence, or any earlier one
 * @throws Unavailable, WrittenByNewer if the next event is of a newer version
 */
export async function readPage(
  dependencies: PageDependencies,
  request: PageRequest,
  end: number,
): Promise<EventPage> {
  const { subscription, after, signal } = request;
  const waiting = dependencies.readSlots.acquire(subscription.organizationId, signal);
  if (waiting === null) throw new Unavailable('event-log');
  using _ = await waiting;
  const until = dependencies.now() + TURN_MS;
  const filling: Filling = { page: { events: [], next: after }, scanned: 0, length: 0 };
  const { page } = filling;
  try {
    for (let span = SPAN; page.next < end && !signal.aborted; span *= 2) {
      const upTo = Math.min(end, page.next + span);
      if (!(await fill(filling, dependencies, { ...request, after: page.next, upTo }))) break;
      page.next = upTo;
      if (dependencies.now() >= until) break;
    }
  } catch (error) {
    if (!(error instanceof UnknownEvent)) throw error;
    // Those before it are as good as ever.
    if (page.next === after) throw new WrittenByNewer(error);
  }
  return { ...page, isMore: page.next < end };
}

type Filling = { page: Omit<EventPage, 'isMore'>; scanned: number; length: number };

/** Adds the events of a range; false: the page is full, or the client has left. */
async function fill(
  filling: Filling,
  { eventStore, onUnreadable }: PageDependencies,
  { subscription, after, upTo, limit, signal }: PageRequest & { upTo: number },
): Promise<boolean> {
  const { page } = filling;
  const subjects = subjectsOf(subscription);
  const range = { subjects, after, upTo, includesArchive: true, batchMax: BATCH_MAX };
  for await (const batch of eventStore.read({ ...range, signal, onUnreadable }))
    for (const event of batch) {
      const text = isMatch(subscription, event) ? JSON.stringify(toPublicEvent(event)) : null;
      filling.scanned += 1;
      filling.length += text?.length ?? 0;
      if (page.events.length > 0 && filling.length > LENGTH_MAX) return false;
      if (text !== null) page.events.push(text);
      page.next = event.sequence;
      if (page.events.length >= limit || filling.scanned >= SCAN_MAX) return false;
    }
  return !signal.aborted;
}
