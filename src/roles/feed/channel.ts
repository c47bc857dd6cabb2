import type { RecordedEvent } from '#events/events.ts';
import type { Subscriber, Entry } from './subscriber.ts';
import { eventFrame } from './sse-frames.ts';

/** Recent events of an organization kept for subscribers that cannot take them yet. */
const RECENT_MAX = 1_000;
const RECENT_BYTES_MAX = 4 * 1024 * 1024;

/** One organization's subscribers in this process. */
export type Channel = {
  /** Adds a subscriber that reads its backlog first: events are kept for it from now on. */
  join(subscriber: Subscriber): void;
  leave(subscriber: Subscriber): void;
  /** Sends events of the organization to the live subscribers: in order, each once. */
  deliver(events: readonly RecordedEvent[]): void;
  /**
   * Passes an event that cannot be sent: a subscriber before it has to read the event store, where
   * it meets the event if its subscription covers it.
   */
  pass(sequence: number): void;
  /**
   * Makes a subscriber live if all events after its cursor are kept here. False: it has to read
   * more from the event store.
   */
  goLive(subscriber: Subscriber): boolean;
  /** Called when a live subscriber takes bytes again. */
  resume(subscriber: Subscriber): void;
  /** A sequence: all events after it are kept here or still to be delivered. */
  since(): number;
  subscribers(): ReadonlySet<Subscriber>;
};

/**
 * @param position of the follower: every later event of the organization will be delivered.
 */
export function createChannel(position: number): Channel {
  const subscribers = new Set<Subscriber>();
  const live = new Set<Subscriber>();
  const recent: Entry[] = [];
  let recentBytes = 0;
  let since = position;
  let newest = position;

  /** Drops events that no subscriber needs; ends subscribers that are too far behind. */
  function trim(): void {
    const isNeeded = subscribers.values().some((one) => !live.has(one) || one.isFull());
    if (!isNeeded) {
      recent.length = 0;
      recentBytes = 0;
      since = newest;
      return;
    }
    let dropped = 0;
    while (recent.length - dropped > RECENT_MAX || recentBytes > RECENT_BYTES_MAX) {
      const oldest = recent[dropped] as Entry;
      recentBytes -= oldest.frame.length;
      since = oldest.sequence;
      dropped += 1;
    }
    if (dropped === 0) return;
    recent.splice(0, dropped);
    for (const subscriber of live) if (subscriber.cursor() < since) subscriber.end('slow_reader');
  }

  return {
    join: (subscriber) => void subscribers.add(subscriber),
    leave(subscriber) {
      subscribers.delete(subscriber);
      live.delete(subscriber);
    },
    deliver(events) {
      for (const event of events) {
        const frame = eventFrame(event);
        recent.push({ sequence: event.sequence, event, frame });
        recentBytes += frame.length;
        newest = event.sequence;
      }
      for (const subscriber of live) subscriber.send(recent);
      trim();
    },
    pass(sequence) {
      for (const subscriber of live) {
        if (subscriber.isFull()) subscriber.end('newer_version');
        else subscriber.advance(sequence);
      }
      recent.length = 0;
      recentBytes = 0;
      newest = sequence;
      since = sequence;
    },
    goLive(subscriber) {
      if (subscriber.cursor() < since) return false;
      live.add(subscriber);
      subscriber.send(recent);
      trim();
      return true;
    },
    resume(subscriber) {
      if (!live.has(subscriber)) return;
      subscriber.send(recent);
      trim();
    },
    since: () => since,
    subscribers: () => subscribers,
  };
}
