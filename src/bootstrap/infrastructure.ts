import { setTimeout as pause } from 'node:timers/promises';
import { steadyViews } from '#projections/store/monotonic-views.ts';
import { createRedisViews, type RedisViews } from '#projections/store/redis/redis-views.ts';
import type { Views } from '#projections/store/views.ts';
import type { Telemetry } from './telemetry.ts';
import { followCertificate, type GivenCertificate } from './certificate-watcher.ts';
import type { Config } from '#src/config/config.ts';
import { createTickets } from '#src/gateway/access/ticket.ts';
import { createUrls, type Urls } from '#src/gateway/access/urls.ts';
import { createVncSecret } from '#src/gateway/access/vnc-secret.ts';
import { connectJetStream, type JetStreamConnection } from '#src/event-store/jetstream/connect.ts';
import { createJetStreamEventLog } from '#src/event-store/jetstream/jetstream-event-store.ts';
import { openDesk, type Desk } from '#src/commands/handle-command.ts';
import { throughOneReader } from '#src/event-store/shared-subscription.ts';
import { createRecent } from '#src/event-store/state-cache.ts';
import { startTail, type Tail } from '#src/event-store/session-events.ts';
import type { Issuer } from '#src/tenants/nkey.ts';
import type { Log } from '#src/telemetry/logger.ts';

/** What `main.ts` has found or made before anything runs. */
export type Given = {
  config: Config;
  log: Log;
  natsUrl: string;
  redisUrl: string;
  masterKey: string;
  serverId: string;
  /** Who lets tenants in to NATS; null: nobody does. */
  issuer: Issuer | null;
  /** Aborts when the process is asked to end: nothing is waited for then. */
  ending: AbortSignal;
  /** Called once the log's streams are there, before anything is appended. */
  onLogReady: () => Promise<void>;
  /** Tells the terminal what takes long. */
  say: (line: string) => void;
  /** Paths of the browsers' programs; null where this process runs none. */
  programs: { chromium: string; xvnc: string; vncpasswd: string } | null;
};

/** What all roles stand on. */
export type Ground = Given &
  Telemetry & {
    connection: JetStreamConnection;
    desk: Desk;
    /** False while this process cannot follow the log. */
    isLogHeard: () => boolean;
    views: Views;
    /** The same as they are, for who keeps them folded. */
    stores: RedisViews;
    /** The read model's own connection, for what shares its round trips. */
    redis: RedisViews['redis'];
    tail: Tail;
    urls: Urls;
    vncPasswordOf: (workloadId: string) => string;
    /** The given one; null: none is. */
    certificate: GivenCertificate | null;
  };

/** A server that a variable names does not answer, or cannot serve; the message begins with it. */
class ServerAway extends Error {
  override readonly name = 'ServerAway';
}

/** @throws ServerAway within some 12 s where the log, within 10 s where the read model is away */
export async function layGround(
  given: Given & Telemetry,
  stack: AsyncDisposableStack,
): Promise<Ground> {
  const { config, log } = given;
  const connection = stack.use(await openLog(given));
  await given.onLogReady();
  const recent = createRecent();
  const onFailure = (error: unknown, what: string) =>
    log.error({ part: 'event log', err: error }, what);
  const eventLog = stack.use(
    await throughOneReader(createJetStreamEventLog(connection), { onFailure }),
  );
  const desk = openDesk(eventLog, Date.now, recent);
  const stored = stack.use(await openViews(given));
  await untilReachable(given, stored);
  const tail = stack.use(
    await startTail(desk.log, (error, what) => log.error({ err: error }, what), recent),
  );
  const files = config.incoming.certificate;
  const masterKey = Buffer.from(given.masterKey);
  const tickets = createTickets(masterKey);
  const { publicWsUrl, publicWssUrl } = config.gateway;
  return {
    ...given,
    connection,
    desk,
    isLogHeard: () => eventLog.isHearing(),
    views: steadyViews(stored),
    stores: stored,
    redis: stored.redis,
    tail,
    urls: createUrls({ wsUrl: publicWsUrl, wssUrl: publicWssUrl, tickets }),
    vncPasswordOf: createVncSecret(masterKey),
    certificate: files === null ? null : stack.use(await followCertificate(files, log)),
  };
}

/** What of the configuration says how the event log is reached, beside its address. */
export function natsAccess({ nats: { credsFile, tls, inboxPrefix, replicas } }: Config) {
  return {
    ...(credsFile === null ? {} : { credsFile }),
    ...(tls === null ? {} : { tls }),
    ...(inboxPrefix === null ? {} : { inboxPrefix }),
    ...(replicas === null ? {} : { replicas }),
  };
}

export function redisAccess({ redisTls }: Config) {
  return redisTls === null ? {} : { tls: redisTls };
}

/** How long a start waits for a Redis that somebody else is to start. */
const REDIS_WITHIN_MS = 10_000;
const POLL_MS = 50;

async function openLog({ config, log, natsUrl, ending }: Given): Promise<JetStreamConnection> {
  // Where roles have users of their own, the api's is the one that may make streams.
  const makesStreams = config.natsUrl === null || config.roles.includes('api');
  log.info({ part: 'event log' }, 'waiting for it');
  try {
    return await connectJetStream({
      url: natsUrl,
      ...natsAccess(config),
      makesStreams,
      awaitsStreams: true,
      name: `browser-session-service ${config.roles.join(',')}`,
      hasArchive: config.hasArchive,
      onStatus: (status) => log.info({ part: 'event log', status }, 'connection'),
      onObjection: (error) => log.error({ part: 'event log', err: error }, 'it objects'),
      onFailure: (error, what) => log.error({ part: 'event log', err: error }, what),
      signal: ending,
    });
  } catch (error) {
    if (error === ending.reason || config.natsUrl === null || !(error instanceof Error))
      throw error;
    throw new ServerAway(`NATS_URL: ${error.message}`, { cause: error });
  }
}

function openViews({ config, log, redisUrl }: Given): Promise<RedisViews> {
  return createRedisViews({
    url: redisUrl,
    ...redisAccess(config),
    onStatus: (status) => log.info({ part: 'read model', status }, 'connection'),
  });
}

/** A running service goes on without its read model; one that starts has nothing to go on with. */
async function untilReachable(given: Given, views: RedisViews): Promise<void> {
  const { log, redisUrl, ending } = given;
  if (views.isReachable()) return;
  log.warn({ part: 'read model' }, 'waiting for it');
  let trouble = 'no answer';
  const note = (error: Error) => (trouble = error.message);
  views.redis.on('error', note);
  const deadline = performance.now() + REDIS_WITHIN_MS;
  while (!views.isReachable()) {
    ending.throwIfAborted();
    if (performance.now() > deadline)
      throw new ServerAway(
        `REDIS_URL: no connection to Redis at ${new URL(redisUrl).host}: ${trouble}`,
      );
    await pause(POLL_MS);
  }
  views.redis.off('error', note);
}
