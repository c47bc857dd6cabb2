import { withArchive, withArchivedRecords } from '#src/features/archive/archived-event-store.ts';
import { createHeadReader } from '#src/features/archive/head.ts';
import { openOnce, type OpenArchive } from '#src/features/archive/open-once.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import type { ArchivistDependencies } from '#src/features/archive/archivist/archivist.ts';
import { openArchiveFiles } from './archive/archive-files.ts';
import type { RedisViews } from '#projections/store/redis/redis-views.ts';
import { ServiceNotFoundError } from './find-service.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import type { Config } from '#src/kernel/config/config.ts';
import { natsAccess, redisAccess } from '#src/kernel/config/stores.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamSizes } from '#src/kernel/event-store/jetstream/jetstream-stream-sizes.ts';
import { createJetStreamTruncation } from '#src/kernel/event-store/jetstream/jetstream-truncation.ts';
import type { ReadStreamSizes } from '#src/kernel/event-store/stream-sizes.ts';
import type { LogTruncation } from '#src/kernel/event-store/truncation.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { createJetStreamDeadLetters } from '#src/kernel/messaging/jetstream/jetstream-dead-letters.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import { createJetStreamObjectStore } from '#src/kernel/objects/jetstream/jetstream-object-store.ts';
import { createJetStreamAccounts } from '#src/kernel/objects/jetstream/jetstream-accounts.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import { withAccounts } from '#src/kernel/objects/owned-objects.ts';
import type { SweepDependencies } from '#src/kernel/objects/sweep/sweep-objects.ts';
import type { RawRecords } from '#src/kernel/event-store/raw-records.ts';

/** The running service as the commands of `bss` use it. */
export type OpenService = AsyncDisposable & {
  context: CommandContext;
  /** Of the log and its archive. */
  records: RawRecords;
  objects: ObjectStore;
  /** What a sweep of the objects needs; they are where OBJECT_STORE says. */
  openObjectSweep(): Promise<SweepDependencies>;
  archiveFiles(): Promise<ArchiveFiles>;
  openArchive: OpenArchive;
  /** What a run of the archivist needs. @throws ServiceNotFoundError as for the read model */
  openArchivist(): Promise<ArchivistDependencies>;
  truncation: LogTruncation;
  readStreamSizes: ReadStreamSizes;
  deadLetters: DeadLetterStore;
  /**
   * Connects to the read model; its connection is closed with the service's.
   * @throws ServiceNotFoundError if the address of Redis is not known
   */
  openViews(): Promise<RedisViews>;
  isConnected(): boolean;
};

/** A running service answers in milliseconds; an operator waits for the command. */
const READY_MS = 2_000;

/**
 * @param makesStreams whether to create missing streams; most commands are of no use without events
 * @throws Error if the event store does not answer within 2 s, is incompatible or has no streams
 */
export async function openService(
  { natsUrl, redisUrl }: { natsUrl: string; redisUrl: string | null },
  config: Config,
  makesStreams: boolean,
): Promise<OpenService> {
  let views: RedisViews | null = null;
  const options = { url: natsUrl, name: 'bss', readyMs: READY_MS, makesStreams };
  const connection = await connectJetStream({ ...options, ...natsAccess(config) });
  const log = createJetStreamEventStore(connection);
  const archiveFiles = () => openArchiveFiles(config.archive.place);
  const openArchive = openOnce(archiveFiles, { readHead: createHeadReader(log) });
  const eventStore = withArchive(log, openArchive);
  const context = createCommandContext(eventStore, Date.now);
  async function openViews(): Promise<RedisViews> {
    if (redisUrl === null) throw new ServiceNotFoundError('REDIS_URL is needed beside NATS_URL');
    // Loaded only where it is used, like the archivist: few commands do.
    const { createRedisViews } = await import('#projections/store/redis/redis-views.ts');
    views ??= await createRedisViews({ url: redisUrl, ...redisAccess(config) });
    return views;
  }
  return {
    context,
    objects: createJetStreamObjectStore(connection),
    archiveFiles,
    openArchive,
    records: withArchivedRecords(createJetStreamRawRecords(connection), log, openArchive),
    truncation: createJetStreamTruncation(connection),
    readStreamSizes: createJetStreamSizes(connection),
    deadLetters: createJetStreamDeadLetters(connection),
    openViews,
    async openObjectSweep() {
      const { sweepDependencies } = await import('./objects/object-sweep.ts');
      const { openObjectStore } = await import('./objects/open-object-store.ts');
      const accounts = createJetStreamAccounts(connection);
      const objects = withAccounts(await openObjectStore(config.objects, connection), accounts, {
        ...config.objects,
        onFailure: tellFailure,
      });
      return sweepDependencies({ config, connection, objects, context });
    },
    async openArchivist() {
      const { archivistDependencies } = await import('./archive/archivist.ts');
      return archivistDependencies({
        config,
        connection,
        context,
        rawViews: await openViews(),
      });
    },
    isConnected: () => connection.isConnected(),
    async [Symbol.asyncDispose]() {
      await views?.[Symbol.asyncDispose]();
      await connection[Symbol.asyncDispose]();
    },
  };
}

/** The command goes on; the archivist's next sweep sets it right. */
function tellFailure(error: unknown, what: string): void {
  process.stderr.write(`${what}: ${String(error)}\n`);
}
