import { UnknownEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { matchesAnyFilter, organizationIn } from '#events/subjects.ts';
import type { EventStore, UnreadableEvent } from '#src/kernel/event-store/event-store.ts';
import { stopAtUnknown } from '#src/kernel/event-store/unreadable.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { subjectsOf, type Subscription } from './subscription.ts';
import { createPlaces } from '#src/kernel/async/places.ts';
import { createFairSlots } from '#src/kernel/async/fair-slots.ts';
import { backfill } from './backfill.ts';
import { createChannel, type Channel } from './channel.ts';
import { createSubscriber, type Subscriber } from './subscriber.ts';
import { createFollower } from './follower.ts';
import { readPage, type EventPage, type PageDependencies, type PageRequest } from './page.ts';
import type { EndReason } from './sse-frames.ts';
import type { Sink } from './sink.ts';
import { startEviction, type IsAllowed } from './eviction.ts';

/** Limits on the open streams of this process, and of one organization in it. */
export type StreamLimits = { clientsMax: number; clientsPerOrganizationMax: number };

export type FeedOptions = StreamLimits & { eventStore: EventStore; logger: Logger };

/** A request to open a stream. */
export type StreamRequest = {
  subscription: Subscription;
  /** A sequence: after it; `since`: at `subscription.since`; `now`: with the next event. */
  begin: number | 'since' | 'now';
  isAllowed: IsAllowed;
  /** Called only if the stream is opened; it begins after the sequence. */
  openSink: (after: number) => Sink;
};

/** Why a stream is not opened; `ahead`: the event store has not reached the position. */
export type StreamRefusal = 'organization-full' | 'process-full' | 'ending' | 'ahead';

export type Feed = AsyncDisposable & {
  /** Opens a stream; null: it is open. @throws Unavailable if the event store does not answer */
  open(request: StreamRequest): Promise<StreamRefusal | null>;
  /**
   * A page of stored events; `ahead`: the event store has not reached the position.
   * @throws Unavailable
   */
  page(request: Omit<PageRequest, 'after'> & Pick<StreamRequest, 'begin'>): Promise<Page>;
  readonly clientsPerOrganizationMax: number;
  /** Number of open streams. */
  clients(): number;
};

type Page = EventPage | 'ahead';

/** Backlogs read at once, of all organizations and of one; others have turns. */
const BACKFILLS = { slots: 8, slotsPerOwner: 4 };
/** Clocks of the servers and of the event store may differ by this much. */
const SKEW_MS = 60_000;

/** The feed of one process. Disposing ends all streams; clients reconnect to another process. */
export function createFeed(options: FeedOptions): Feed {
  const { eventStore, logger } = options;
  const reading = createReading(eventStore, logger);
  const subscribers = createSubscribers(reading, logger);
  const places = createPlaces({
    max: options.clientsMax,
    perOwner: options.clientsPerOrganizationMax,
  });
  const eviction = startEviction(subscribers.all);
  const follower = createFollower(eventStore, logger, {
    events(events) {
      for (const [organizationId, own] of Map.groupBy(events, organizationOf)) {
        subscribers.deliver(organizationId, own);
        if (own.some(({ type }) => type === 'organization.key-revoked'))
          eviction.recheck(organizationId);
      }
    },
    unknown: (poison) => subscribers.endAt(poison),
    lost: () => subscribers.endAll('interrupted'),
  });
  let isEnding = false;

  /** Opens the stream; returns the refusal, or null once the stream is open. */
  async function begin(request: StreamRequest, place: Disposable): Promise<StreamRefusal | null> {
    await follower.started();
    const after = await positionOf(eventStore, request, await eventStore.lastSequence());
    if (isEnding) return 'ending';
    if (after === null) return 'ahead';
    subscribers.add(request, after, follower.position(), () => place[Symbol.dispose]());
    eviction.begin();
    return null;
  }
  return {
    async open(request) {
      if (isEnding) return 'ending';
      const { organizationId } = request.subscription;
      const place = places.take(organizationId);
      if ('refused' in place)
        return place.refused === 'owner' ? 'organization-full' : 'process-full';
      try {
        const refusal = await begin(request, place);
        if (refusal !== null) place[Symbol.dispose]();
        return refusal;
      } catch (error) {
        place[Symbol.dispose]();
        throw error;
      }
    },
    async page(request) {
      const end = await eventStore.lastSequence();
      const after = await positionOf(eventStore, request, end);
      return after === null ? 'ahead' : readPage(reading, { ...request, after }, end);
    },
    clientsPerOrganizationMax: options.clientsPerOrganizationMax,
    clients: () => subscribers.all.size,
    async [Symbol.asyncDispose]() {
      isEnding = true;
      eviction[Symbol.dispose]();
      subscribers.endAll('shutting_down');
      await follower[Symbol.asyncDispose]();
    },
  };
}

/** How stored events are read, for streams and pages together. */
type Reading = PageDependencies;

function createReading(eventStore: EventStore, logger: Logger): Reading {
  return {
    eventStore,
    readSlots: createFairSlots(BACKFILLS),
    now: () => performance.now(),
    onUnreadable(poison: UnreadableEvent) {
      stopAtUnknown(poison);
      logger.error(poison, 'event feed backlog: malformed event skipped');
    },
  };
}

/** All subscribers of this process, in one channel per organization. */
function createSubscribers(reading: Reading, logger: Logger) {
  const channels = new Map<string, Channel>();
  const all = new Map<Subscriber, IsAllowed>();

  function add(
    { subscription, isAllowed, openSink }: StreamRequest,
    after: number,
    position: number,
    onLeft: () => void,
  ): void {
    const { organizationId, sessionId } = subscription;
    const channel = channels.get(organizationId) ?? createChannel(position);
    channels.set(organizationId, channel);
    const subscriber = createSubscriber(subscription, after, openSink(after), {
      drained: () => channel.resume(subscriber),
      ended(reason) {
        channel.leave(subscriber);
        if (channel.subscribers().size === 0) channels.delete(organizationId);
        all.delete(subscriber);
        onLeft();
        if (reason !== null && reason !== 'shutting_down')
          logger.warn({ organizationId, sessionId, reason }, 'event stream ended');
      },
    });
    channel.join(subscriber);
    all.set(subscriber, isAllowed);
    backfill(reading, channel, subscriber).catch((error: unknown) => {
      if (error instanceof UnknownEvent) return subscriber.end('newer_version');
      logger.warn({ err: error, organizationId, sessionId }, 'event stream backlog failed');
      subscriber.end('interrupted');
    });
  }
  return {
    all,
    add,
    deliver: (organizationId: string, events: readonly RecordedEvent[]) =>
      channels.get(organizationId)?.deliver(events),
    /**
     * Ends the streams that an event of a newer version may belong to. Their clients reconnect
     * behind the last event that they got, to a process that can read it sooner or later.
     */
    endAt({ sequence, subject }: UnreadableEvent) {
      const organizationId = organizationIn(subject) ?? '';
      const channel = channels.get(organizationId);
      for (const subscriber of channel?.subscribers() ?? [])
        if (matchesAnyFilter(subjectsOf(subscriber.subscription), subject))
          subscriber.end('newer_version');
      channel?.pass(sequence);
    },
    endAll(reason: EndReason) {
      for (const subscriber of all.keys()) subscriber.end(reason);
    },
  };
}

/** The sequence after which the stream begins; null if the event store has not reached it. */
async function positionOf(
  eventStore: EventStore,
  { subscription, begin }: Pick<StreamRequest, 'subscription' | 'begin'>,
  end: number,
): Promise<number | null> {
  if (begin === 'since') {
    const from = new Date(Date.parse(subscription.since ?? '') - SKEW_MS).toISOString();
    return eventStore.sequenceBefore(from);
  }
  if (begin === 'now') return end;
  return begin > end ? null : begin;
}

function organizationOf({ aggregate }: RecordedEvent): string {
  return 'organizationId' in aggregate ? aggregate.organizationId : '';
}
