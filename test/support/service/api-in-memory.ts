import { pino } from 'pino';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { runProjection } from '#projections/runner/run-projection.ts';
import { idOf } from '#projections/projection.ts';
import { liveServers, servers } from '#projections/servers.ts';
import { sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Views } from '#projections/store/views.ts';
import { workloads } from '#projections/workloads.ts';
import type { HealthMonitor } from '#src/api/health/health-monitor.ts';
import type { ApiParts } from '#src/api/dependencies.ts';
import { createLocalLimiter } from '#src/api/auth/rate-limit.ts';
import { startQueuePace } from '#src/api/sessions/queue-place.ts';
import { apiRoutes } from '#src/api/routes.ts';
import { buildServer } from '#src/api/http/server.ts';
import { createFeed } from '#src/feed/feed.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import { load } from '#src/event-store/load-state.ts';
import { createMemoryLeases } from '#src/messaging/leases.memory.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { createMemoryParked } from '#src/messaging/dead-letters.memory.ts';
import { startTail } from '#src/event-store/session-events.ts';
import { createMemoryTimers } from '#src/messaging/timers.memory.ts';
import { createSimulatedBrowsers } from '#src/provisioner/browsers/simulated/simulated-browsers.ts';
import { startProvisioner } from '#src/provisioner/provisioner.ts';
import { openMetrics } from '#src/telemetry/metrics.ts';
import { startTimekeeper } from '#src/timekeeper/timekeeper.ts';
import { eventually } from './service.ts';

const ORGANIZATION = 'acme';
const CREDITS = 10_000;
const usual = {
  limits: { requestsPerMinute: 1_000_000, concurrentSessions: 100, credits: CREDITS },
  maxLifetimeMs: 72 * 3_600_000,
};
const FEED_LIMITS = { clientsMax: 10, clientsPerOrganizationMax: 5 };
const log = pino({ level: 'silent' });

/** What an API of this process is made of, for tests that only look at its routes. */
export const noParts = {} as ApiParts;

/**
 * The whole service in this process, on the memory adapters and a clock that is moved by hand.
 * @param wrapViews stands between the service and its read model
 */
export async function startApp(
  wrapViews = (views: Views) => views,
  changes: Partial<typeof usual> = {},
) {
  const { limits, maxLifetimeMs } = { ...usual, ...changes };
  const owner = { organizationId: ORGANIZATION, role: 'owner', userId: 'ada', limits } as const;
  await using stack = new AsyncDisposableStack();
  let offsetMs = 0;
  const now = () => Date.now() + offsetMs;
  const desk = { log: createMemoryEventLog({ clock: { now } }), now };
  const timers = createMemoryTimers({ now });
  // The lease is renewed by the machine's clock; a server is not lost because a test jumps ahead.
  const leases = createMemoryLeases({ now: () => Date.now() });
  const views = wrapViews(stack.use(createMemoryViews()));
  const tail = stack.use(await startTail(desk.log, rethrow));
  const stop = new AbortController();
  const parked = createMemoryParked();
  const common = { log: desk.log, views, parked, signal: stop.signal, onParked: rethrow };
  const projecting = Promise.all([
    runProjection({ ...common, projection: sessionView }),
    runProjection({ ...common, projection: organizationSessions }),
    runProjection({ ...common, projection: workloads }),
    runProjection({ ...common, projection: servers }),
  ]);
  stack.defer(async () => {
    stop.abort();
    await projecting;
  });
  const ground = { desk, views, leases, tail, log };
  const queue = { afterMs: 60_000, timeoutMs: 300_000 };
  stack.use(
    await startTimekeeper({
      ...ground,
      timers,
      queue,
      onLogReconnect: () => () => undefined,
    }),
  );
  const browsers = await createSimulatedBrowsers({ launchMs: 1, failRate: 0, now });
  stack.use(
    await startProvisioner({
      ...ground,
      vncPasswordOf,
      browsers,
      server: { id: 'srv_1', ip: '10.0.0.1' },
      limits: { minIdle: 2, maxIdle: 20, max: 20, launchesAtOnce: 4, browserBytes: 0 },
      readHost: async () => ({ memoryFreeBytes: null, cpuPressure: null }),
      onLogReconnect: () => () => undefined,
    }),
  );
  const live = async () => (await views.counts(idOf(servers), [liveServers]))[0] === 1;
  await eventually(live, 'the server has joined');
  const asked = { id: ORGANIZATION, name: 'Acme', tier: 'max', credits: CREDITS } as const;
  await registerOrganization(desk, asked, causeBy('test'));

  const take = createLocalLimiter(now);
  const server = buildServer({
    routes: apiRoutes({
      ...ground,
      createWaitMs: 10_000,
      queueMax: 10,
      queueTimeoutMs: queue.timeoutMs,
      pace: startQueuePace(tail, now),
      maxLifetimeMs,
      addresses: {
        cdpUrl: (_, id) => `ws://host:1/devtools/browser/${id}`,
        vncUrl: (_, id) => `wss://host:2/vnc/${id}/websockify`,
        viewerUrl: (_, id) => `http://host:1/vnc/${id}/`,
        vncPassword: vncPasswordOf,
      },
      health: healthy,
      credentials: { reached: () => Promise.resolve() },
      metrics: openMetrics({ roles: 'api', owners: ['api'] }),
      metricsToken: null,
      feed: stack.use(createFeed({ ...FEED_LIMITS, log: desk.log, logger: log })),
      authenticate: () => owner,
    }),
    gatekeeper: {
      authenticate: () => owner,
      rateLimiter: {
        take: (who, limit) => Promise.resolve(take(who, limit)),
        isShared: () => true,
      },
      anonymous: limits,
      now,
    },
    log,
  });
  stack.defer(() => server.close());
  const all = stack.move();

  async function request(method: 'GET' | 'POST' | 'DELETE', path: string, payload?: object) {
    const headers = { authorization: 'Bearer any' };
    const reply = await server.inject({ method, url: path, headers, ...(payload && { payload }) });
    return { status: reply.statusCode, body: reply.json() };
  }
  return {
    request,
    now,
    browsers,
    ledger: async () =>
      (await load<'ledger'>(desk.log, { kind: 'ledger', organizationId: ORGANIZATION })).state,
    /** Lets time pass: timers that are due by then fire. */
    pass(ms: number) {
      offsetMs += ms;
      timers.fireDue();
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function vncPasswordOf(workloadId: string): string {
  return `password-of-${workloadId}`;
}

const healthy: HealthMonitor = {
  database: () => 'healthy',
  autoscaler: () => 'healthy',
  rateLimit: () => 'healthy',
  overall: () => 'healthy',
  missing: () => [],
  [Symbol.dispose]: () => undefined,
};

function rethrow(error: unknown, what: string): never {
  throw new Error(`${what}: ${JSON.stringify(error)}`);
}
