import { ARCHIVE_STREAM } from '#events/subjects.ts';
import type { ProjectedLog } from '#projections/runner/run-projection.ts';
import { createRedisViews, type RedisViews } from '#projections/store/redis/redis-views.ts';
import { natsAccess, redisAccess } from './infrastructure.ts';
import type { Config } from '#src/config/config.ts';
import { NoService } from '../cli/errors.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { createJetStreamEventLog } from '#src/event-store/jetstream/jetstream-event-store.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import { follow } from '#src/event-store/jetstream/subscribe.ts';
import { createJetStreamParked } from '#src/messaging/jetstream/jetstream-dead-letters.ts';
import type { ParkedEvents } from '#src/messaging/dead-letters.ts';
import { createJetStreamRecords } from '#src/event-store/jetstream/jetstream-raw-records.ts';
import type { Records } from '#src/event-store/raw-records.ts';

/** What the commands of `bss` work on: the log of the running service. */
export type OpenService = AsyncDisposable & {
  desk: Desk;
  records: Records;
  /** The same of the archive; null where the log has none. */
  archive: Records | null;
  /** The log, followed by what the archive has of it; null where it has none. */
  archivedLog: ProjectedLog | null;
  parked: ParkedEvents;
  /**
   * The read model, which ends with the service.
   * @throws NoService where nothing says where it is
   */
  openViews(): Promise<RedisViews>;
  isConnected(): boolean;
};

/** A service that runs answers in milliseconds; the command that waits for it is a person's. */
const READY_MS = 2_000;

/**
 * @param makesLog whether a log is made where there is none yet; most commands have no use for an
 * empty one
 * @throws Error where the log does not answer within 2 s, cannot serve, or is not there
 */
export async function openService(
  { natsUrl, redisUrl }: { natsUrl: string; redisUrl: string | null },
  config: Config,
  makesLog: boolean,
): Promise<OpenService> {
  let views: RedisViews | null = null;
  const options = { url: natsUrl, name: 'bss', readyMs: READY_MS, makesStreams: makesLog };
  const connection = await connectJetStream({ ...options, ...natsAccess(config) });
  const log = createJetStreamEventLog(connection);
  const followArchive: EventLog['follow'] = (range) => follow(connection, range, ARCHIVE_STREAM);
  return {
    desk: { log, now: Date.now },
    records: createJetStreamRecords(connection, 'log'),
    archive: connection.hasArchive ? createJetStreamRecords(connection, 'archive') : null,
    archivedLog: connection.hasArchive ? { ...log, follow: followArchive } : null,
    parked: createJetStreamParked(connection),
    async openViews() {
      if (redisUrl === null) throw new NoService('REDIS_URL is needed: NATS_URL is given without');
      views ??= await createRedisViews({ url: redisUrl, ...redisAccess(config) });
      return views;
    },
    isConnected: () => connection.isConnected(),
    async [Symbol.asyncDispose]() {
      await views?.[Symbol.asyncDispose]();
      await connection[Symbol.asyncDispose]();
    },
  };
}
