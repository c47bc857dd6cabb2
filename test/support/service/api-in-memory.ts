import { pino } from 'pino';
import { createReaderWatch } from '#src/kernel/telemetry/reader-watch.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { runProjection } from '#projections/runner/run-projection.ts';
import { profiles } from '#projections/profiles.ts';
import { projectionId } from '#projections/projection.ts';
import { liveServers, servers } from '#projections/servers.ts';
import { sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Views } from '#projections/store/views.ts';
import { workloads } from '#projections/workloads.ts';
import { features } from '#src/features/all.ts';
import { defaultTiers } from '#src/kernel/domain/organization/tiers.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import type { HealthMonitor } from '#src/roles/api/health/health-monitor.ts';
import type { Caller } from '#src/roles/api/auth/authenticate.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { createLocalLimiter } from '#src/kernel/http/rate-window.ts';
import { hashKey } from '#src/kernel/ids.ts';
import { createTransfers } from '#src/roles/api/http/transfers.ts';
import { startQueuePace } from '#src/roles/api/sessions/queue-place.ts';
import { registerRoutes } from '#src/roles/api/routes.ts';
import { buildServer } from '#src/roles/api/http/server.ts';
import { createFeed } from '#src/roles/feed/feed.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { createMemoryQuestions } from '#src/kernel/messaging/server-questions.memory.ts';
import { createSessionFiles } from '#src/features/files/session-files.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import { subscribeToSessions } from '#src/kernel/event-store/session-events.ts';
import { createMemoryMcpSessions } from '#src/kernel/messaging/mcp-sessions.memory.ts';
import { createMemoryTimers } from '#src/kernel/messaging/timers.memory.ts';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import { createMasterKeys } from '#src/kernel/master-keys.ts';
import { createMemoryAccounts } from '#src/kernel/objects/accounts/accounts.memory.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import { withAccounts } from '#src/kernel/objects/owned-objects.ts';
import { memoryProfiles } from '#test/support/stores/memory-profiles.ts';
import { createMemoryWorkQueues } from '#src/kernel/messaging/work-queue.memory.ts';
import { filesPart } from '#src/features/files/files-part.ts';
import { recorderPart } from '#src/features/recordings/recorder/recorder-part.ts';
import { screenshotsOfServer } from '#src/features/screenshots/server.ts';
import { createOpenEgress } from '#src/features/egress/open-egress.ts';
import { createProxyPasswords } from '#src/features/egress/proxy-password.ts';
import { startProvisioner } from '#src/roles/provisioner/provisioner.ts';
import { loadRoutes } from '#src/start/features.ts';
import { openMetrics } from '#src/kernel/telemetry/metrics.ts';
import { startTimekeeper } from '#src/roles/timekeeper/timekeeper.ts';
import { openFeatures } from '#test/support/stores/features-in-memory.ts';
import { eventually } from './service.ts';

export const ORGANIZATION = 'acme';
/** An organization that has nothing to do with the first, once it is registered. */
const OTHER = 'umbrella';
const CREDITS = 10_000;
const usual = {
  limits: {
    requestsPerMinute: 1_000_000,
    concurrentSessions: 100,
    credits: CREDITS,
    queueWeight: 1,
  },
  maxLifetimeMs: 72 * 3_600_000,
};
/** Limits of files. */
export const FILE_BYTES_MAX = 1024 ** 2;
/** Places of transfers; an organization has a third of them. */
const TRANSFERS = { upload: 12, download: 12, extension: 4, command: 3 };
const TRANSFER_WAIT_MS = 100;
export const FILES_RETAIN_MS = 24 * 3_600_000;
/** How long clients of the MCP server may be away. */
const mcpTimes = { graceMs: 2_400, silenceMs: 60_000 };
const FEED_LIMITS = { clientsMax: 10, clientsPerOrganizationMax: 5 };
const log = pino({ level: 'silent' });
const proxyPasswords = createProxyPasswords(createMasterKeys([Buffer.alloc(32, 'key')]));
const NOTHING_ARCHIVED = { agrees: true, segments: 0, records: 0, findings: [] };

/**
 * The whole service in this process, on the memory adapters and a clock that the test moves.
 * @param wrapViews wraps the read model of the service
 * @param wrapEventStore wraps its event store
 */
export async function startApp(
  wrapViews = (views: Views) => views,
  changes: Partial<typeof usual> & {
    allowsPrivateWebhooks?: boolean;
    organizationMaxBytes?: number;
  } = {},
  wrapEventStore = (eventStore: EventStore) => eventStore,
  operatorToken: string | null = null,
) {
  const { limits, maxLifetimeMs } = { ...usual, ...changes };
  const owner: Caller = {
    organizationId: ORGANIZATION,
    role: 'owner',
    userId: 'ada',
    keyHash: null,
    limits,
  };
  /** By bearer; beside them `role/user` of the first organization, and its owner. */
  const callers: Record<string, Caller> = {
    viewer: { ...owner, role: 'viewer', userId: 'victor' },
    member: { ...owner, role: 'member', userId: 'mia' },
    admin: { ...owner, role: 'admin', userId: 'alan' },
    other: { ...owner, organizationId: OTHER, userId: 'olga' },
    /** A key of the owner, who else has a token. */
    key: { ...owner, keyHash: hashKey('key') },
  };
  const authenticate = (bearer: string) => callers[bearer] ?? callerOf(bearer, owner);
  await using stack = new AsyncDisposableStack();
  let offsetMs = 0;
  const now = () => Date.now() + offsetMs;
  const context = createCommandContext(wrapEventStore(createMemoryEventStore()), now);
  const timers = createMemoryTimers({ now });
  const mcpSessions = createMemoryMcpSessions({ now });
  // The lease is renewed by the machine's clock; a server is not lost because a test jumps ahead.
  const leases = createMemoryLeases({ now: () => Date.now() });
  const stores = stack.use(createMemoryViews());
  const views = wrapViews(stores);
  const sessionEvents = stack.use(await subscribeToSessions(context.eventStore, rethrow));
  const stop = new AbortController();
  const deadLetters = createMemoryDeadLetters();
  const decisions: string[] = [];
  const common = {
    eventStore: context.eventStore,
    views,
    deadLetters,
    signal: stop.signal,
    onDeadLetter: rethrow,
  };
  const projecting = Promise.all([
    runProjection({ ...common, projection: sessionView }),
    runProjection({ ...common, projection: organizationSessions }),
    runProjection({ ...common, projection: workloads }),
    runProjection({ ...common, projection: servers }),
    runProjection({ ...common, projection: profiles }),
  ]);
  stack.defer(async () => {
    stop.abort();
    await projecting;
  });
  const openWorkQueue = createMemoryWorkQueues(context.eventStore, { clock: { now } });
  const infrastructure = { context, openWorkQueue, views, leases, sessionEvents, log };
  const queue = { afterMs: 60_000, timeoutMs: 300_000 };
  stack.use(
    await startTimekeeper({
      ...infrastructure,
      timers,
      lostAfterMs: 10_000,
      mcp: { ...mcpTimes, sessions: mcpSessions },
      queue,
      onLogReconnect: () => () => undefined,
    }),
  );
  const browsers = await createSimulatedBrowsers({ launchMs: 1, failRate: 0, now });
  const questions = createMemoryQuestions();
  const objects = withAccounts(createMemoryObjectStore({ now }), createMemoryAccounts(), {
    organizationMaxBytes: changes.organizationMaxBytes ?? null,
    now,
    onFailure: rethrow,
  });
  const files = createSessionFiles({
    ...{ eventStore: context.eventStore, objects, folders: browsers.folders, now, log },
    limits: { fileBytesMax: FILE_BYTES_MAX, sessionBytesMax: 2 * FILE_BYTES_MAX },
    endWithinMs: 200,
  });
  const recording = { maxBytes: 64 * 1024 * 1024, times: { segmentMs: 100 } };
  const metrics = openMetrics({ roles: 'api', owners: ['api'] });
  const pictures = screenshotsOfServer({ log, metrics });
  const screenshot = pictures.answers!.screenshot!;
  stack.use(
    await startProvisioner({
      ...infrastructure,
      openProfiles: await memoryProfiles(stack, context.eventStore, objects),
      vncPasswordOf,
      browsers,
      openEgress: createOpenEgress({ passwords: proxyPasswords }),
      parts: [
        filesPart(files),
        recorderPart({ ...recording, objects, vncPasswordOf, log, now }),
        ...(pictures.part ? [pictures.part] : []),
      ],
      server: { id: 'srv_1', ip: '10.0.0.1' },
      limits: { minIdle: 2, maxIdle: 20, max: 20, launchesAtOnce: 4, browserBytes: 0 },
      queueTimeoutMs: queue.timeoutMs,
      readHost: () => ({ memoryFreeBytes: null, cpuPressure: null }),
      onLogReconnect: () => () => undefined,
    }),
  );
  const serving = stack.use(questions.serve('srv_1', 'screenshot', screenshot));
  const servingFiles = stack.use(questions.serve('srv_1', 'files', files.answer));
  const live = async () => (await views.counts(projectionId(servers), [liveServers]))[0] === 1;
  await eventually(live, 'the server has joined');
  const asked = {
    id: ORGANIZATION,
    name: 'Acme',
    tier: 'max',
    credits: CREDITS,
  } as const;
  await registerOrganization(context, asked, newMetadata('test'));

  const { opened, webhooks, signer, ownAddresses } = await openFeatures({
    eventStore: context.eventStore,
    mcp: { ...mcpTimes, sessions: mcpSessions },
    allowsPrivate: changes.allowsPrivateWebhooks ?? false,
    log,
  });
  const take = createLocalLimiter(now);
  const dependencies: ApiDependencies = {
    ...infrastructure,
    createWaitMs: 10_000,
    queue: { max: 10, perOrganizationMax: 10 },
    queueTimeoutMs: queue.timeoutMs,
    pace: startQueuePace(sessionEvents, now),
    maxLifetimeMs,
    proxyPasswords,
    ownAddresses,
    addresses: {
      cdpUrl: ({ id }) => `ws://host:1/devtools/browser/${id}`,
      bidiUrl: ({ id }) => `ws://host:1/devtools/bidi/${id}`,
      vncUrl: ({ id }, _keyHash, grant) => `wss://host:2/vnc/${grant?.id ?? id}/websockify`,
      viewerUrl: ({ id }, _keyHash, _password, grant) => `http://host:1/vnc/${grant?.id ?? id}/`,
      vncPassword: vncPasswordOf,
    },
    health: healthy,
    readers: createReaderWatch(),
    completeFrom: () => null,
    credentials: { reached: () => Promise.resolve() },
    serverQuestions: questions,
    objects,
    transfers: createTransfers(TRANSFERS, TRANSFER_WAIT_MS),
    filesRetainMs: FILES_RETAIN_MS,
    gatewayUrl: 'http://host:1',
    metrics,
    operator: {
      ...{ stores, deadLetters, tiers: defaultTiers },
      log: pino({ base: null }, { write: (line: string) => decisions.push(line) }),
      verifyArchive: async () => ({ ...NOTHING_ARCHIVED, signer: null }),
    },
    metricsToken: null,
    ownHosts: ['browsers.example'],
    feed: stack.use(createFeed({ ...FEED_LIMITS, eventStore: context.eventStore, logger: log })),
    authenticate,
    dashboard: new Map(),
  };
  const { added } = await loadRoutes(features, (_, name) => opened[name]);
  const server = buildServer({
    routes: (scope) => registerRoutes(scope, dependencies, added),
    dialects: added.flatMap(({ dialect }) => dialect ?? []),
    gatekeeper: {
      authenticate,
      rateLimiter: {
        take: (...asked) => Promise.resolve(take(...asked)),
        isShared: () => true,
      },
      anonymous: limits,
      operatorToken,
      now,
    },
    log,
  });
  stack.defer(async () => {
    const closed = server.close();
    // A client that has not read an answer to its end would hold its connection for 72 s.
    server.server.closeAllConnections();
    await closed;
  });
  const all = stack.move();

  /** The answer as bytes. */
  async function download(path: string, further: Record<string, string> = {}) {
    const headers = { authorization: 'Bearer any', ...further };
    const reply = await server.inject({ method: 'GET', url: path, headers });
    return { status: reply.statusCode, headers: reply.headers, bytes: reply.rawPayload };
  }
  async function request(
    method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    payload?: object,
    further: Record<string, string> = {},
  ) {
    const headers = { authorization: 'Bearer any', ...further };
    const reply = await server.inject({ method, url: path, headers, ...(payload && { payload }) });
    return { status: reply.statusCode, body: reply.payload === '' ? null : reply.json() };
  }
  return {
    request,
    download,
    registerOther: () =>
      registerOrganization(context, { ...asked, id: OTHER }, newMetadata('test')),
    signer,
    /** Listens on the network; resolves with the address. */
    listen: () => server.listen({ host: '127.0.0.1', port: 0 }),
    now,
    /** The server answers no more questions. */
    stopServing: () => {
      serving[Symbol.dispose]();
      servingFiles[Symbol.dispose]();
    },
    objects,
    webhooks,
    leases,
    /** What follows the downloads of browsers. */
    downloads: files.part,
    context,
    mcpSessions,
    browsers,
    deadLetters,
    /** The lines of the operator's decisions that leave no event. */
    decided: () => decisions.map((line) => JSON.parse(line) as unknown),
    ledger: async () =>
      (
        await loadState<'ledger'>(context.eventStore, {
          kind: 'ledger',
          organizationId: ORGANIZATION,
        })
      ).state,
    /** Moves the clock: timers that are due by then fire. */
    pass(ms: number) {
      offsetMs += ms;
      timers.fireDue();
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** `role/user`: another caller of the first organization. */
function callerOf(credential: string, owner: Caller): Caller {
  const [role = '', userId] = credential.split('/');
  return userId === undefined ? owner : { ...owner, role: role as Caller['role'], userId };
}

function vncPasswordOf(workloadId: string): string {
  return `password-of-${workloadId}`;
}

const healthy: HealthMonitor = {
  database: () => 'healthy',
  autoscaler: () => 'healthy',
  rateLimit: () => 'healthy',
  objectStore: () => 'healthy',
  overall: () => 'healthy',
  missing: () => [],
  [Symbol.dispose]: () => undefined,
};

function rethrow(error: unknown, what: string): never {
  throw new Error(`${what}: ${JSON.stringify(error)}`);
}
