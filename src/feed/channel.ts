import type { RecordedEvent } from '#events/events.ts';
import type { Client, Entry } from './subscriber.ts';
import { eventFrame } from './sse-frames.ts';

/** What is kept of an organization's events for clients that cannot take them now. */
const RECENT_MAX = 1_000;
const RECENT_BYTES_MAX = 4 * 1024 * 1024;

/** One organization's clients in this process. */
export type Channel = {
  /** A client that will come from the log: what comes from now on is kept for it. */
  join(client: Client): void;
  leave(client: Client): void;
  /** Events of the organization in log order, each once. */
  deliver(events: readonly RecordedEvent[]): void;
  /**
   * The client has all up to its cursor. True where all that follows is at hand: then it is live;
   * false: it has to read on.
   */
  goLive(client: Client): boolean;
  /** A live client takes bytes again. */
  resume(client: Client): void;
  /** All events behind this are at hand, here or yet to come. */
  since(): number;
  clients(): ReadonlySet<Client>;
};

/**
 * @param position of the follower: every later event of the organization will be delivered
 */
export function createChannel(position: number): Channel {
  const clients = new Set<Client>();
  const live = new Set<Client>();
  const recent: Entry[] = [];
  let recentBytes = 0;
  let since = position;
  let newest = position;

  /** Forgets what nobody needs; those for whom too much would have to be kept are cut off. */
  function trim(): void {
    const isNeeded = clients.values().some((one) => !live.has(one) || one.isFull());
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
    for (const client of live) if (client.cursor() < since) client.end('slow_reader');
  }

  return {
    join: (client) => void clients.add(client),
    leave(client) {
      clients.delete(client);
      live.delete(client);
    },
    deliver(events) {
      for (const event of events) {
        const frame = eventFrame(event);
        recent.push({ sequence: event.sequence, event, frame });
        recentBytes += frame.length;
        newest = event.sequence;
      }
      for (const client of live) client.send(recent);
      trim();
    },
    goLive(client) {
      if (client.cursor() < since) return false;
      live.add(client);
      client.send(recent);
      trim();
      return true;
    },
    resume(client) {
      if (!live.has(client)) return;
      client.send(recent);
      trim();
    },
    since: () => since,
    clients: () => clients,
  };
}
