import { EVENTS_STREAM, filters } from '#events/subjects.ts';
import { withArchive, withArchivedRecords } from '#src/features/archive/archived-event-store.ts';
import { createHeadReader } from '#src/features/archive/head.ts';
import { openOnce, type OpenArchive } from '#src/features/archive/open-once.ts';
import { monotonicViews } from '#projections/store/monotonic-views.ts';
import { createRedisViews, type RedisViews } from '#projections/store/redis/redis-views.ts';
import type { Views } from '#projections/store/views.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { AuditKey } from './audit-key.ts';
import { createFaultReport } from './archive/archive-faults.ts';
import { openArchiveFiles } from './archive/archive-files.ts';
import { openObjectStore } from './objects/open-object-store.ts';
import type { Telemetry } from './telemetry.ts';
import { watchCertificate, type WatchedCertificate } from './certificate-watcher.ts';
import type { Config, RoleName } from '#src/kernel/config/config.ts';
import { natsAccess, redisAccess } from '#src/kernel/config/stores.ts';
import { createTickets } from '#src/roles/gateway/access/ticket.ts';
import {
  createDriverUrl,
  createUrls,
  type DriverUrl,
  type Urls,
} from '#src/roles/gateway/access/urls.ts';
import { createLinkKeys, type LinkKeys } from '#src/browsers/link/browser-link.ts';
import { createProxyPasswords, type ProxyPasswords } from '#src/features/egress/proxy-password.ts';
import { createVncSecret } from '#src/roles/gateway/access/vnc-secret.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import type { RawRecords } from '#src/kernel/event-store/raw-records.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createOwnAddresses, type OwnAddresses } from '#src/kernel/host/own-addresses.ts';
import { createNameResolver, type ResolveName } from '#src/kernel/host/resolve-name.ts';
import { createCommandContext, type CommandContext } from '#src/commands/handle-command.ts';
import { withSharedSubscription } from '#src/kernel/event-store/shared-subscription.ts';
import { createStateCache } from '#src/kernel/event-store/state-cache.ts';
import { subscribeToSessions, type SessionEvents } from '#src/kernel/event-store/session-events.ts';
import type { MasterKeys } from '#src/kernel/master-keys.ts';
import { createJetStreamAccounts } from '#src/kernel/objects/jetstream/jetstream-accounts.ts';
import { withAccounts, type OwnedObjects } from '#src/kernel/objects/owned-objects.ts';
import type { Feature } from '#src/features/feature.ts';
import type { Issuer } from '#src/features/nats-tenants/nkey.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';

/** What `start.ts` has found or created before any role runs. */
export type ComposeOptions = {
  config: Config;
  log: Logger;
  natsUrl: string;
  redisUrl: string;
  masterKeys: MasterKeys;
  /** The credential of /api/operator; null: there is no such path. */
  operatorToken: string | null;
  serverId: string;
  /** Signs the admission of tenants to NATS; null: no tenant is admitted. */
  issuer: Issuer | null;
  /** Aborts when the process gets a signal to end; the start then stops waiting. */
  ending: AbortSignal;
  /** Prints a line to the terminal about a step that takes long. */
  print: (line: string) => void;
  /** The optional parts of this process. */
  features: readonly Feature[];
  /** Paths of the browsers' programs; null where this process runs none. */
  programs: { chromium: string; xvnc: string; chromedriver: string | null } | null;
};

/** The dependencies that all roles share. */
export type Infrastructure = ComposeOptions &
  Telemetry & {
    connection: JetStreamConnection;
    /** Its event store includes the archive. */
    context: CommandContext;
    openArchive: OpenArchive;
    /** The stored records of the log, archived ones included. */
    records: RawRecords;
    /** The key that signs audits; null: this process has none. */
    findSigner: () => Promise<AuditKey | null>;
    resolveName: ResolveName;
    /** What no connection that a caller asks for may lead to. */
    ownAddresses: OwnAddresses;
    /** Files, profiles, recordings, thumbnails and extensions. */
    objects: OwnedObjects;
    /** False while this process cannot read from the event store. */
    isReceivingEvents: () => boolean;
    /** Time since the last sign of life of this process's reader of the event store. */
    eventsSilenceMs: () => number;
    views: Views;
    /** The stores without the monotonic-read guard, for the projector. */
    rawViews: RedisViews;
    /** The read model's connection, shared with the rate limiter. */
    redis: RedisViews['redis'];
    sessionEvents: SessionEvents;
    urls: Urls;
    driverUrl: DriverUrl;
    vncPasswordOf: (workloadId: string) => string;
    linkKeys: LinkKeys;
    proxyPasswords: ProxyPasswords;
    /** The configured certificate; null: none is configured. */
    certificate: WatchedCertificate | null;
  };

/**
 * A configured server does not answer or is incompatible; the message begins with the variable.
 * The name is printed by main.ts.
 */
class ServerAway extends Error {
  override readonly name = 'ServerAway';
}

/** @throws ServerAway if the event store (within 12 s) or Redis (within 10 s) is unavailable */
export async function openInfrastructure(
  options: ComposeOptions & Telemetry,
  stack: AsyncDisposableStack,
): Promise<Infrastructure> {
  const { config, log } = options;
  const connection = stack.use(await openLog(options));
  const stateCache = createStateCache();
  const onFailure = (error: unknown, what: string) =>
    log.error({ part: 'event store', err: error }, what);
  const eventLog = stack.use(
    await withSharedSubscription(createJetStreamEventStore(connection), {
      subjects: followedBy(config.roles),
      onFailure,
    }),
  );
  options.readers.add(EVENTS_STREAM, eventLog.silenceMs);
  const openArchive = openOnce(() => openArchiveFiles(config.archive.place), {
    readHead: createHeadReader(eventLog),
    onFault: createFaultReport(log, options.metrics),
  });
  const context = createCommandContext(withArchive(eventLog, openArchive), Date.now, stateCache);
  const stored = stack.use(await openViews(options));
  await untilReachable(options, stored);
  const sessionEvents = stack.use(
    await subscribeToSessions(
      context.eventStore,
      (error, what) => log.error({ err: error }, what),
      stateCache,
    ),
  );
  const files = config.incoming.certificate;
  // What is open to the holder of a key is open to the current one alone.
  const { bytes: masterKey } = options.masterKeys.current;
  const tickets = createTickets(masterKey);
  const { publicWsUrl, publicWssUrl } = config.gateway;
  const resolveName = createNameResolver();
  return {
    ...options,
    connection,
    context,
    openArchive,
    records: withArchivedRecords(
      createJetStreamRawRecords(connection),
      context.eventStore,
      openArchive,
    ),
    findSigner: () => findSigner(config),
    resolveName,
    ownAddresses: createOwnAddresses(config.ownHosts, resolveName),
    objects: withAccounts(
      stack.use(await openObjectStore(config.objects, connection)),
      createJetStreamAccounts(connection),
      { ...config.objects, now: context.now, onFailure },
    ),
    isReceivingEvents: () => eventLog.isReceiving(),
    eventsSilenceMs: eventLog.silenceMs,
    views: monotonicViews(stored),
    rawViews: stored,
    redis: stored.redis,
    sessionEvents,
    urls: createUrls({ wsUrl: publicWsUrl, wssUrl: publicWssUrl, tickets }),
    driverUrl: createDriverUrl(config.gateway.internalUrl, tickets),
    vncPasswordOf: createVncSecret(masterKey),
    linkKeys: createLinkKeys(masterKey),
    proxyPasswords: createProxyPasswords(options.masterKeys),
    certificate: files === null ? null : stack.use(await watchCertificate(files, log)),
  };
}

/**
 * The api processes of an event store have to share the key that signs audits, so only a process
 * that is alone may make one.
 */
async function findSigner(config: Config): Promise<AuditKey | null> {
  const mayMakeKey = config.natsUrl === null || config.roles.includes('archivist');
  const { findAuditKey, openAuditKey } = await import('./audit-key.ts');
  return mayMakeKey ? openAuditKey(config) : findAuditKey(config);
}

/** What each role follows beside sessions and their ledgers; null: everything. */
const FOLLOWED: Record<RoleName, string[] | null> = {
  api: null,
  projector: null,
  archivist: null,
  webhooks: null,
  gateway: filters.organizations,
  provisioner: filters.servers,
  timekeeper: [],
};

/** The state cache of each process keeps sessions and their ledgers. */
function followedBy(roles: readonly RoleName[]): string[] {
  const more = roles.map((role) => FOLLOWED[role]);
  const some = more.filter((one) => one !== null);
  return some.length < more.length
    ? filters.all
    : [...new Set([...filters.ledgersAndSessions, ...some.flat()])];
}

/** How long a start waits for a Redis that is started at the same time. */
const REDIS_WITHIN_MS = 10_000;
const POLL_MS = 50;

async function openLog({
  config,
  log,
  natsUrl,
  ending,
}: ComposeOptions): Promise<JetStreamConnection> {
  // If each role has its own NATS user, only that of the api may create streams.
  const makesStreams = config.natsUrl === null || config.roles.includes('api');
  log.info({ part: 'event store' }, 'waiting for event store');
  try {
    return await connectJetStream({
      url: natsUrl,
      ...natsAccess(config),
      makesStreams,
      awaitsStreams: true,
      name: `browser-session-service ${config.roles.join(',')}`,
      onStatus: (status) =>
        log.info({ part: 'event store', status }, 'event store connection changed'),
      onObjection: (error) =>
        log.error({ part: 'event store', err: error }, 'NATS reported an error'),
      onFailure: (error, what) => log.error({ part: 'event store', err: error }, what),
      signal: ending,
    });
  } catch (error) {
    if (error === ending.reason || config.natsUrl === null || !(error instanceof Error))
      throw error;
    throw new ServerAway(`NATS_URL: ${error.message}`, { cause: error });
  }
}

function openViews({ config, log, redisUrl }: ComposeOptions): Promise<RedisViews> {
  return createRedisViews({
    url: redisUrl,
    ...redisAccess(config),
    onStatus: (status) => log.info({ part: 'read model', status }, 'read model connection changed'),
  });
}

/** A running service tolerates an unavailable Redis; a starting one waits for it, then fails. */
async function untilReachable(options: ComposeOptions, views: RedisViews): Promise<void> {
  const { log, redisUrl, ending } = options;
  if (views.isReachable()) return;
  log.warn({ part: 'read model' }, 'waiting for read model');
  let lastError = 'no answer';
  const note = (error: Error) => (lastError = error.message);
  views.redis.on('error', note);
  const deadline = performance.now() + REDIS_WITHIN_MS;
  while (!views.isReachable()) {
    ending.throwIfAborted();
    if (performance.now() > deadline)
      throw new ServerAway(
        `REDIS_URL: no connection to Redis at ${new URL(redisUrl).host}: ${lastError}`,
      );
    await sleep(POLL_MS);
  }
  views.redis.off('error', note);
}
