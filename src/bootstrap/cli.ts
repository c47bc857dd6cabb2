import { createRedisViews, type RedisViews } from '#projections/store/redis/redis-views.ts';
import { natsAccess, redisAccess } from './infrastructure.ts';
import { ServiceNotFoundError } from './find-service.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import type { Config } from '#src/config/config.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/event-store/jetstream/jetstream-event-store.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { createJetStreamDeadLetters } from '#src/messaging/jetstream/jetstream-dead-letters.ts';
import type { DeadLetterStore } from '#src/messaging/dead-letters.ts';
import { createJetStreamRawRecords } from '#src/event-store/jetstream/jetstream-raw-records.ts';
import type { RawRecords } from '#src/event-store/raw-records.ts';

/** The running service as the commands of `bss` use it. */
export type OpenService = AsyncDisposable & {
  context: CommandContext;
  records: RawRecords;
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
  const eventStore = createJetStreamEventStore(connection);
  return {
    context: createCommandContext(eventStore, Date.now),
    records: createJetStreamRawRecords(connection),
    deadLetters: createJetStreamDeadLetters(connection),
    async openViews() {
      if (redisUrl === null) throw new ServiceNotFoundError('REDIS_URL is needed beside NATS_URL');
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
