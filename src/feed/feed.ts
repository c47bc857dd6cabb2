import type { RecordedEvent } from '#events/events.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import type { Log } from '#src/telemetry/logger.ts';
import type { Asked } from './subscription.ts';
import { backfill, createPlaces } from './backfill.ts';
import { createChannel, type Channel } from './channel.ts';
import { createClient, type Client } from './subscriber.ts';
import { createFollower } from './follower.ts';
import type { EndReason } from './sse-frames.ts';
import type { Sink } from './sink.ts';
import { startPatrol, type IsAllowed } from './eviction.ts';
import { createSeats, type SeatLimits } from './stream-limits.ts';

export type FeedOptions = SeatLimits & { log: EventLog; logger: Log };

/** A stream that is asked for. */
export type Opening = {
  asked: Asked;
  /**
   * A sequence: what comes behind it; since: what `asked.since` lets through; now: what follows.
   */
  begin: number | 'since' | 'now';
  isAllowed: IsAllowed;
  /** Called once the stream is sure to begin. */
  openSink: () => Sink;
};

/** Why a stream is not opened; `ahead`: the log has not reached the position. */
export type NotOpened = 'organization-full' | 'process-full' | 'ending' | 'ahead';

export type Feed = AsyncDisposable & {
  /** Opens a stream; null where it has begun. @throws Unavailable where the log does not answer */
  open(opening: Opening): Promise<NotOpened | null>;
  readonly clientsPerOrganizationMax: number;
  /** Streams that are open. */
  clients(): number;
};

/** Backlogs that are read at once. */
const BACKFILLS_MAX = 8;
/** The clock of a server may be so far from that of the log. */
const SKEW_MS = 60_000;

/** The feed of one process. Disposing ends all streams: their clients reconnect elsewhere. */
export function createFeed(options: FeedOptions): Feed {
  const { log, logger } = options;
  const floor = createFloor(log, logger);
  const seats = createSeats(options);
  const patrol = startPatrol(floor.clients);
  const follower = createFollower(log, logger, {
    events(events) {
      for (const [organizationId, own] of Map.groupBy(events, organizationOf)) {
        floor.deliver(organizationId, own);
        if (own.some(({ type }) => type === 'organization.key-revoked'))
          patrol.suspect(organizationId);
      }
    },
    lost: () => floor.endAll('interrupted'),
  });
  let isEnding = false;

  /** What stands in the way, else null: then the stream has begun. */
  async function begin(opening: Opening): Promise<NotOpened | null> {
    await follower.started();
    const after = await positionOf(log, opening);
    if (isEnding) return 'ending';
    if (after === null) return 'ahead';
    floor.enter(opening, after, follower.position(), () =>
      seats.free(opening.asked.organizationId),
    );
    return null;
  }
  return {
    async open(opening) {
      if (isEnding) return 'ending';
      const { organizationId } = opening.asked;
      const full = seats.take(organizationId);
      if (full !== null) return full;
      try {
        const refusal = await begin(opening);
        if (refusal !== null) seats.free(organizationId);
        return refusal;
      } catch (error) {
        seats.free(organizationId);
        throw error;
      }
    },
    clientsPerOrganizationMax: options.clientsPerOrganizationMax,
    clients: () => floor.clients.size,
    async [Symbol.asyncDispose]() {
      isEnding = true;
      patrol[Symbol.dispose]();
      floor.endAll('shutting_down');
      await follower[Symbol.asyncDispose]();
    },
  };
}

/** Those who listen, by organization. */
function createFloor(log: EventLog, logger: Log) {
  const channels = new Map<string, Channel>();
  const clients = new Map<Client, IsAllowed>();
  const parts = {
    log,
    places: createPlaces(BACKFILLS_MAX),
    onMalformed: (poison: object) => logger.error(poison, 'malformed event left out of a backlog'),
  };

  function enter(
    { asked, isAllowed, openSink }: Opening,
    after: number,
    position: number,
    onLeft: () => void,
  ): void {
    const { organizationId, sessionId } = asked;
    const channel = channels.get(organizationId) ?? createChannel(position);
    channels.set(organizationId, channel);
    const client = createClient(asked, after, openSink(), {
      drained: () => channel.resume(client),
      ended(reason) {
        channel.leave(client);
        if (channel.clients().size === 0) channels.delete(organizationId);
        clients.delete(client);
        onLeft();
        if (reason !== null && reason !== 'shutting_down')
          logger.warn({ organizationId, sessionId, reason }, 'event stream ended');
      },
    });
    channel.join(client);
    clients.set(client, isAllowed);
    backfill(parts, channel, client).catch((error: unknown) => {
      logger.warn({ err: error }, 'the backlog of an event stream cannot be read');
      client.end('interrupted');
    });
  }
  return {
    clients,
    enter,
    deliver: (organizationId: string, events: readonly RecordedEvent[]) =>
      channels.get(organizationId)?.deliver(events),
    endAll(reason: EndReason) {
      for (const client of clients.keys()) client.end(reason);
    },
  };
}

/** The sequence to begin behind; null where the log has not reached it. */
async function positionOf(log: EventLog, { asked, begin }: Opening): Promise<number | null> {
  if (begin === 'since') {
    const from = new Date(Date.parse(asked.since ?? '') - SKEW_MS).toISOString();
    return log.sequenceBefore(from);
  }
  const end = await log.lastSequence();
  if (begin === 'now') return end;
  return begin > end ? null : begin;
}

function organizationOf({ aggregate }: RecordedEvent): string {
  return 'organizationId' in aggregate ? aggregate.organizationId : '';
}
