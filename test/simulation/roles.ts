import { allProjections } from '#projections/all-projections.ts';
import { startProjections } from '#projections/runner/run-projections.ts';
import type { StoreMaintenance } from '#projections/store/maintenance.ts';
import { monotonicViews } from '#projections/store/monotonic-views.ts';
import type { Views } from '#projections/store/views.ts';
import { createMemoryMcpSessions } from '#src/kernel/messaging/mcp-sessions.memory.ts';
import type { CreateDependencies } from '#src/commands/create-session.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { subscribeToSessions } from '#src/kernel/event-store/session-events.ts';
import { withSharedSubscription } from '#src/kernel/event-store/shared-subscription.ts';
import { createStateCache } from '#src/kernel/event-store/state-cache.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';
import type { MemoryTimers } from '#src/kernel/messaging/timers.memory.ts';
import type { OpenWorkQueue } from '#src/kernel/messaging/work-queue.ts';
import { startProvisioner } from '#src/roles/provisioner/provisioner.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { startTimekeeper } from '#src/roles/timekeeper/timekeeper.ts';
import { eventStoreOver } from './event-store-port.ts';
import type { Host } from './host.ts';
import { deadLettersOver, leasesOver, timersOver, viewsOver, workQueuesOver } from './ports.ts';
import { createNetwork, type Process, type World } from './world.ts';

/** The servers that all processes reach: the memory adapters. */
export type Servers = {
  eventStore: EventStore;
  views: Views & StoreMaintenance;
  openWorkQueue: OpenWorkQueue;
  timers: MemoryTimers;
  leases: Leases;
  deadLetters: DeadLetterStore;
  /** The browsers of a host as its process runs them. */
  machines: (browsers: Browsers) => Browsers;
};

export type Role = 'api' | 'projector' | 'timekeeper' | 'provisioner';

/** What a process serves: an API's command handlers, and its end by SIGTERM. */
export type Roles = { api: CreateDependencies | null } & AsyncDisposable;

/** Requests that may wait beyond the servers' room. */
const QUEUE_MAX = 6;
/** When a session that no server has accepted is queued, and when it fails. */
/** No MCP session. */
const withoutMcp = (now: () => number) => {
  return { sessions: createMemoryMcpSessions({ now }), graceMs: 60_000, silenceMs: 60_000 };
};
export const QUEUE = { afterMs: 2_000, timeoutMs: 40_000 };

/**
 * Composes the roles of one process as src/start does, on ports with faults. Called as the
 * process.
 * @throws Unavailable if a server does not answer during the start
 */
export async function startRoles(
  world: World,
  process: Process,
  servers: Servers,
  { roles, host }: { roles: readonly Role[]; host: Host | null },
): Promise<Roles> {
  const { log, ...shared } = infrastructureOf(world, process, servers);
  await using stack = new AsyncDisposableStack();
  const stateCache = createStateCache();
  const eventStore = stack.use(await withSharedSubscription(shared.eventStore));
  const now = () => Math.floor(world.time.now() + process.skewMs);
  const context = createCommandContext(eventStore, now, stateCache);
  const views = monotonicViews(shared.views);
  const onError = (error: unknown, what: string) => log.error({ err: error }, what);
  const sessionEvents = stack.use(await subscribeToSessions(eventStore, onError, stateCache));
  const { openWorkQueue, leases, timers, deadLetters } = shared;
  const onLogReconnect = (listener: () => void) => {
    process.onReconnect.add(listener);
    return () => void process.onReconnect.delete(listener);
  };
  const common = { context, views, openWorkQueue, leases, onLogReconnect, log };
  if (roles.includes('projector'))
    stack.use(
      startProjections({
        projections: allProjections,
        eventStore,
        views: shared.views,
        deadLetters,
        onDeadLetter: (event, reason) =>
          world.tell(process.name, `dead letter ${event.subject}: ${reason}`),
        onUnknown: () => {},
        onSourceFailure: () => {},
        onRemoved: () => {},
      }),
    );
  if (roles.includes('timekeeper'))
    stack.use(
      await startTimekeeper({
        ...common,
        timers,
        lostAfterMs: LEASE_MS,
        queue: QUEUE,
        mcp: withoutMcp(now),
      }),
    );
  if (roles.includes('provisioner') && host !== null)
    stack.use(
      await startProvisioner({
        ...common,
        sessionEvents,
        queueTimeoutMs: QUEUE.timeoutMs,
        ...serverOf(servers, host, process),
      }),
    );
  const queue = { max: QUEUE_MAX, perOrganizationMax: QUEUE_MAX };
  const api = { context, views, sessionEvents, queue };
  const all = stack.move();
  return {
    api: roles.includes('api') ? api : null,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The ports of one process, and its logger. */
function infrastructureOf(world: World, process: Process, servers: Servers) {
  const network = createNetwork(world, process);
  return {
    eventStore: eventStoreOver(world, process, network, servers.eventStore),
    views: viewsOver(process, network, servers.views),
    openWorkQueue: workQueuesOver(world, process, network, servers.openWorkQueue),
    timers: timersOver(world, process, network, servers.timers),
    leases: leasesOver(network, servers.leases),
    deadLetters: deadLettersOver(network, servers.deadLetters),
    log: loggerOf(world, process),
  };
}

const LIMITS = { minIdle: 1, maxIdle: 2, max: 3, launchesAtOnce: 2, browserBytes: 0 };

function serverOf({ machines }: Servers, host: Host, process: Process) {
  return {
    browsers: machines(host.browsersFor(process)),
    server: { id: host.id, ip: '10.0.0.1' },
    vncPasswordOf: () => 'password',
    limits: LIMITS,
    readHost: () => ({ memoryFreeBytes: null, cpuPressure: null }),
    onShutdown: host.hasContainers ? ('leave' as const) : ('stop' as const),
  };
}

/** Warnings and errors are lines of the story. */
function loggerOf(world: World, process: Process): Logger {
  const line = (fields: unknown, text?: string) => {
    const { err, workloadId, sessionId } = (fields ?? {}) as Record<string, unknown>;
    const about = [workloadId, sessionId, err].filter((one) => one !== undefined);
    world.tell(process.name, `logs: ${text ?? ''} ${about.map(String).join(' ')}`);
  };
  const nothing = () => {};
  return { debug: nothing, info: nothing, warn: line, error: line };
}
