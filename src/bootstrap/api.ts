import { startApi } from '#src/api/api.ts';
import { watchCatchUp } from '#src/api/health/catch-up.ts';
import { followCredentials, type Credentials } from '#src/api/auth/api-keys.ts';
import { startHealthMonitor, type HealthMonitor } from '#src/api/health/health-monitor.ts';
import { startQueuePace } from '#src/api/sessions/queue-place.ts';
import { createRedisRateLimiter } from '#src/api/auth/rate-limit.redis.ts';
import { watchService } from '#src/api/health/service-metrics.ts';
import { composeAuthenticate } from '../compose-authenticate.ts';
import type { Ground } from './infrastructure.ts';
import { createJetStreamParked } from '#src/messaging/jetstream/jetstream-dead-letters.ts';
import { watchLog } from '#src/event-store/store-identity.ts';
import { createFeed } from '#src/feed/feed.ts';
import { answerCallouts } from '#src/tenants/callout.jetstream.ts';
import { publishToTenants } from '#src/tenants/publish.jetstream.ts';

export async function composeApi(ground: Ground, stack: AsyncDisposableStack) {
  const { config, connection, desk, redis, log, certificate, metrics } = ground;
  const rateLimiter = createRedisRateLimiter(redis, desk.now);
  const credentials = stack.use(await followCredentials(desk.log, config.tiers, log));
  const health = await composeHealth(ground, () => rateLimiter.isShared(), stack);
  const authenticate = await composeAuthenticate(ground, credentials, stack);
  await letTenantsIn(ground, credentials, stack);
  watchService(metrics, {
    views: ground.views,
    parked: createJetStreamParked(connection),
    isLogConnected: () => connection.isConnected(),
    now: desk.now,
  });
  const feed = createFeed({
    log: desk.log,
    logger: log,
    clientsMax: config.eventStreams.max,
    clientsPerOrganizationMax: config.eventStreams.perOrganizationMax,
  });
  const api = await startApi({
    ...ground,
    feed,
    authenticate,
    addresses: { ...ground.urls, vncPassword: ground.vncPasswordOf },
    health,
    createWaitMs: config.api.createWaitMs,
    queueMax: config.queue.max,
    queueTimeoutMs: config.queue.timeoutMs,
    pace: startQueuePace(ground.tail, desk.now),
    maxLifetimeMs: config.maxLifetimeMs,
    credentials,
    metricsToken: config.telemetry.metricsToken,
    gatekeeper: {
      authenticate,
      rateLimiter,
      anonymous: config.tiers.free,
      now: desk.now,
    },
    listen: config.api,
    incoming: {
      ...(certificate === null ? {} : { certificate: certificate.now }),
      trustedProxies: config.incoming.trustedProxies,
    },
  });
  certificate?.onChange((changed) => api.setCertificate(changed));
  return {
    ...api,
    /** With browsers of its own, a process has started once the read model has its server. */
    missing: () =>
      config.roles.includes('provisioner') && health.autoscaler() !== 'healthy'
        ? [...health.missing(), 'browser server']
        : health.missing(),
    async [Symbol.asyncDispose]() {
      // Streams end first: the API would wait for them as for any request that is under way.
      await feed[Symbol.asyncDispose]();
      await api[Symbol.asyncDispose]();
    },
  };
}

async function composeHealth(
  { connection, desk, views, tail, log, isLogHeard }: Ground,
  isRateLimitShared: () => boolean,
  stack: AsyncDisposableStack,
): Promise<HealthMonitor> {
  const catchUp = stack.use(watchCatchUp(desk.log, views));
  const onChange = (isSame: boolean) =>
    log.error(
      { part: 'event log', isSame },
      isSame ? 'it is there again' : 'it was emptied or replaced; a restart makes this whole',
    );
  const sameLog = stack.use(await watchLog(desk.log, onChange));
  return stack.use(
    startHealthMonitor({
      isLogConnected: () => connection.isConnected(),
      isLogSame: () => sameLog.isSame(),
      isLogHeard,
      views,
      isRateLimitShared,
      hasCaughtUp: () => catchUp.isDone(),
      position: () => tail.position(),
      now: desk.now,
    }),
  );
}

/** Tenants come in by NATS where there is somebody to vouch for them. */
async function letTenantsIn(
  { config, connection, desk, issuer, log }: Ground,
  credentials: Credentials,
  stack: AsyncDisposableStack,
): Promise<void> {
  if (issuer === null) return;
  const callouts = await answerCallouts({
    connection,
    issuer,
    log: desk.log,
    logger: log,
    keys: {
      organizationOf: (keyHash) => credentials.holderOf(keyHash)?.organizationId ?? null,
      reached: (sequence) => credentials.reached(sequence),
    },
    connectionsPerKeyMax: config.tenants.connectionsPerKeyMax,
    now: desk.now,
  });
  stack.use(callouts);
  stack.use(publishToTenants({ connection, log: desk.log, logger: log }));
}
