import { fileURLToPath } from 'node:url';
import { createRedisMemoryUse } from '#projections/store/redis/redis-memory-use.ts';
import { watchArchiveBorder } from '#src/features/archive/open-once.ts';
import { loadDashboard } from '#src/roles/api/dashboard/dashboard-files.ts';
import { startApi } from '#src/roles/api/api.ts';
import type { OperatorParts } from '#src/roles/api/dependencies.ts';
import { followCredentials, type Credentials } from '#src/roles/api/auth/api-keys.ts';
import {
  authenticateByEither,
  createKeyAuthenticator,
  type Authenticate,
} from '#src/roles/api/auth/authenticate.ts';
import { followKeySet } from '#src/roles/api/auth/jwt-key-set.ts';
import { createJwtAuthenticator, secretKeys, type JwtKeys } from '#src/roles/api/auth/jwt.ts';
import { createRedisRateLimiter } from '#src/roles/api/auth/rate-limit.redis.ts';
import { watchCatchUp } from '#src/roles/api/health/catch-up.ts';
import { startHealthMonitor, type HealthMonitor } from '#src/roles/api/health/health-monitor.ts';
import { openArchiveFiles } from './archive/archive-files.ts';
import { archiveKeyPlace, knownFingerprint } from './audit-key.ts';
import { createArchiveSize } from './archive/archive-size.ts';
import { registerServiceMetrics } from '#src/roles/api/health/service-metrics.ts';
import { createTransfers, placesFor } from '#src/roles/api/http/transfers.ts';
import { startQueuePace } from '#src/roles/api/sessions/queue-place.ts';
import { dashboardFolder } from '#src/start/embedded/build/dashboard.mjs';
import type { JwtConfig } from '#src/kernel/config/jwt.ts';
import { createJetStreamSizes } from '#src/kernel/event-store/jetstream/jetstream-stream-sizes.ts';
import { watchStoreIdentity } from '#src/kernel/event-store/store-identity.ts';
import { createFeed } from '#src/roles/feed/feed.ts';
import { createJetStreamDeadLetters } from '#src/kernel/messaging/jetstream/jetstream-dead-letters.ts';
import { createJetStreamQuestions } from '#src/kernel/messaging/jetstream/jetstream-questions.ts';
import { auditArchive } from '#src/features/archive/audit-archive.ts';
import { answerCallouts } from '#src/features/nats-tenants/callout.jetstream.ts';
import { hasPublished, publishToTenants } from '#src/features/nats-tenants/publish.jetstream.ts';
import type { Infrastructure } from './infrastructure.ts';
import { loadRoutes } from './features.ts';

/** Connections of a process that are no event streams; a client keeps its own for 72 s. */
const REQUESTS_MAX = 10_000;

/** The top folder of the checkout or image. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The built dashboard, which may open the gateway's sockets. */
function readDashboard({ config: { gateway } }: Infrastructure) {
  const sockets = [gateway.publicWsUrl, gateway.publicWssUrl].map((url) => new URL(url).origin);
  return loadDashboard(dashboardFolder(ROOT), [...new Set(sockets)]);
}

/** The host names of the addresses that clients get. */
function publicHosts({ publicWsUrl, publicWssUrl }: Infrastructure['config']['gateway']): string[] {
  return [publicWsUrl, publicWssUrl].map((url) => new URL(url).hostname);
}

export async function composeApi(infrastructure: Infrastructure, stack: AsyncDisposableStack) {
  const { config, context, log, certificate } = infrastructure;
  const rateLimiter = createRedisRateLimiter(infrastructure.rawViews, context.now);
  const credentials = stack.use(
    await followCredentials(context.eventStore, config.tiers, log, infrastructure),
  );
  const health = await composeHealth(infrastructure, () => rateLimiter.isShared(), stack);
  const authenticate = await composeAuthenticate(infrastructure, credentials, stack);
  await startTenantAuth(infrastructure, credentials, stack);
  composeMetrics(infrastructure);
  const border = stack.use(watchArchiveBorder(context.eventStore, infrastructure.openArchive));
  const feed = composeFeed(infrastructure);
  const additions = stack.use(
    await loadRoutes(infrastructure.features, (one) => one.open(infrastructure)),
  );
  const api = await startApi({
    ...infrastructure,
    added: additions.added,
    feed,
    authenticate,
    gatewayUrl: config.gateway.internalUrl,
    addresses: { ...infrastructure.urls, vncPassword: infrastructure.vncPasswordOf },
    proxyPasswords: infrastructure.proxyPasswords,
    health,
    completeFrom: border.completeFrom,
    createWaitMs: config.api.createWaitMs,
    queue: config.queue,
    queueTimeoutMs: config.queue.timeoutMs,
    pace: startQueuePace(infrastructure.sessionEvents, context.now),
    maxLifetimeMs: config.maxLifetimeMs,
    credentials,
    serverQuestions: createJetStreamQuestions(infrastructure.connection),
    transfers: createTransfers(placesFor(infrastructure.objects.putBytes)),
    filesRetainMs: config.files.retainMs,
    operator: operatorParts(infrastructure),
    dashboard: await readDashboard(infrastructure),
    metricsToken: config.telemetry.metricsToken,
    gatekeeper: {
      authenticate,
      rateLimiter,
      anonymous: config.tiers.free,
      operatorToken: infrastructure.operatorToken,
      operatorPort: config.api.operatorPort,
      now: context.now,
    },
    listen: config.api,
    connectionsMax: config.eventStreams.max + REQUESTS_MAX,
    ownHosts: [config.api.host, ...publicHosts(config.gateway)],
    incoming: {
      ...(certificate === null ? {} : { certificate: certificate.now }),
      trustedProxies: config.incoming.trustedProxies,
    },
  });
  certificate?.onChange((changed) => api.setCertificate(changed));
  return {
    ...api,
    /** A process that runs browsers has started once the read model contains its server. */
    missing: () =>
      config.roles.includes('provisioner') && health.autoscaler() !== 'healthy'
        ? [...health.missing(), 'browser server']
        : health.missing(),
    async [Symbol.asyncDispose]() {
      // End the event streams first: closing the API waits for open requests, streams included.
      await feed[Symbol.asyncDispose]();
      // Together: what is under way is answered before the API closes its connections.
      await Promise.all([additions.end(), api[Symbol.asyncDispose]()]);
    },
  };
}

function composeFeed({ config, context, log }: Infrastructure) {
  return createFeed({
    eventStore: context.eventStore,
    logger: log,
    clientsMax: config.eventStreams.max,
    clientsPerOrganizationMax: config.eventStreams.perOrganizationMax,
  });
}

function composeMetrics(infrastructure: Infrastructure): void {
  const { config, connection, context, redis, metrics, objects } = infrastructure;
  registerServiceMetrics(metrics, {
    views: infrastructure.views,
    deadLetters: createJetStreamDeadLetters(connection),
    readStreamSizes: createJetStreamSizes(connection),
    readMemoryUse: createRedisMemoryUse(redis),
    readStoreUse: () => objects.use(),
    isEventStoreConnected: () => connection.isConnected(),
    now: context.now,
    queueTimeoutMs: config.queue.timeoutMs,
    readArchiveSize: createArchiveSize(infrastructure.openArchive, context.now),
    retainEndedMs: config.archive.retainEndedMs,
  });
}

function operatorParts(infrastructure: Infrastructure): OperatorParts {
  const { rawViews, connection, config, context, log } = infrastructure;
  const verifyArchive = () =>
    auditArchive({
      eventStore: context.eventStore,
      openFiles: () => openArchiveFiles(config.archive.place),
      findSigner: () => knownFingerprint(archiveKeyPlace(config)),
    });
  const deadLetters = createJetStreamDeadLetters(connection);
  return { stores: rawViews, deadLetters, tiers: config.tiers, log, verifyArchive };
}

async function composeHealth(
  { connection, context, views, sessionEvents, log, isReceivingEvents, objects }: Infrastructure,
  isRateLimitShared: () => boolean,
  stack: AsyncDisposableStack,
): Promise<HealthMonitor> {
  const catchUp = stack.use(watchCatchUp(context.eventStore, views));
  const onChange = (isSame: boolean) =>
    log.error(
      { part: 'event store', isSame },
      isSame
        ? 'event store is available again'
        : 'event store was emptied or replaced; restart this process',
    );
  const storeIdentity = stack.use(await watchStoreIdentity(context.eventStore, onChange));
  return stack.use(
    startHealthMonitor({
      isEventStoreConnected: () => connection.isConnected(),
      isSameEventStore: () => storeIdentity.isSame(),
      isReceivingEvents,
      views,
      isRateLimitShared,
      readStoreUse: () => objects.use(),
      hasCaughtUp: () => catchUp.isDone(),
      position: () => sessionEvents.position(),
      now: context.now,
    }),
  );
}

/**
 * Answers auth callouts of tenants' NATS connections, if an issuer is configured. Where tenants
 * were admitted once, events are copied without one, too: what PUBLIC still has to get is not
 * purged.
 */
async function startTenantAuth(
  { config, connection, context, issuer, log }: Infrastructure,
  credentials: Credentials,
  stack: AsyncDisposableStack,
): Promise<void> {
  const { eventStore } = context;
  if (issuer !== null || (await hasPublished(connection)))
    stack.use(publishToTenants({ connection, eventStore, logger: log }));
  if (issuer === null) return;
  const callouts = await answerCallouts({
    connection,
    issuer,
    eventStore,
    logger: log,
    keys: {
      organizationOf: (keyHash) => credentials.holderOf(keyHash)?.organizationId ?? null,
      reached: (sequence) => credentials.reached(sequence),
    },
    connectionsPerKeyMax: config.tenants.connectionsPerKeyMax,
    now: context.now,
  });
  stack.use(callouts);
}

/** Authenticates by API key, and by JWT if configured. */
export async function composeAuthenticate(
  { config: { jwt }, context, log }: Infrastructure,
  credentials: Credentials,
  stack: AsyncDisposableStack,
): Promise<Authenticate> {
  const byKey = createKeyAuthenticator((hash) => credentials.holderOf(hash));
  if (jwt === null) return byKey;
  const keys = await keysOf(jwt);
  const limitsOf = (organizationId: string) => credentials.limitsOf(organizationId);
  const { issuer, audience } = jwt;
  const byJwt = createJwtAuthenticator({ keys, issuer, audience, limitsOf, now: context.now });
  return authenticateByEither(byKey, byJwt);

  async function keysOf({ signedBy }: JwtConfig): Promise<JwtKeys> {
    if ('secret' in signedBy) return secretKeys(signedBy.secret);
    const { keySetUrl: url, algorithms } = signedBy;
    return stack.use(await followKeySet({ url, algorithms, log }));
  }
}
