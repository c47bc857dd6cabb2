import type { ServerState } from '#events/server.ts';
import { filters } from '#events/subjects.ts';
import { projectionId } from '#projections/projection.ts';
import { readList } from '#projections/store/queries.ts';
import { liveServers, servers } from '#projections/servers.ts';
import type { Views } from '#projections/store/views.ts';
import { launchesWanted } from '#src/kernel/domain/fleet/pool-policy.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import type { Leases } from '#src/kernel/messaging/leases.ts';
import type { OpenWorkQueue } from '#src/kernel/messaging/work-queue.ts';
import type { SessionEvents } from '#src/kernel/event-store/session-events.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Tracer } from '#src/kernel/telemetry/tracer.ts';
import type { OpenEgress } from '#src/browsers/egress-endpoint.ts';
import { startAutoscaler } from './pool/autoscale.ts';
import type { BrowserPart } from './browser-part.ts';
import { noProfiles, type OpenProfiles } from './profiles.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import {
  handleExit,
  closePool,
  drainPool,
  detachPool,
  handleSessionEvent,
  setClosed,
  setOpen,
} from './pool/terminate.ts';
import { watchStorage } from './pool/watch-storage.ts';
import type { Host } from './pool/host-resources.ts';
import { keepFilled, requeueAll } from './pool/launch.ts';
import { replaceOutdated } from './pool/rollover.ts';
import {
  createReconcileReporter,
  createServerReporter,
  holdLease,
  joinCommand,
  reportBuilds,
  type Lease,
  type ReportServer,
} from './fleet-membership.ts';
import { applyStatus, followOwnServer } from './own-server.ts';
import { createPool, poolFacts, until, type Pool, type PoolLimits } from './pool/pool.ts';
import { reconcileEvery, type Reconciled } from './reconcile/reconcile.ts';
import type { ExtensionsOf } from '#src/browsers/extensions/extension-source.ts';
import { createReporter, type Reporter } from '#src/commands/reporter.ts';
import { acceptRequests } from './pool/accept-requests.ts';
import { requestsWaitingAt } from './pool/earlier-requests.ts';
import { createWaitingSessions, type WaitingSessions } from './pool/waiting-sessions.ts';

export type ProvisionerDependencies = {
  context: CommandContext;
  openWorkQueue: OpenWorkQueue;
  views: Views;
  leases: Leases;
  sessionEvents: SessionEvents;
  browsers: Browsers;
  server: { id: string; ip: string };
  vncPasswordOf: (workloadId: string) => string;
  /** Opens the proxies of sessions with egress rules; absent: they get no browser. */
  openEgress?: OpenEgress;
  /** The extensions of organizations; absent: browsers have none. */
  extensionsOf?: ExtensionsOf;
  /** Absent: sessions with a profile get no browser. */
  openProfiles?: OpenProfiles;
  /** What a browser may store on its server; by default it is not looked at. */
  storedBytesMax?: number;
  limits: PoolLimits;
  /** The longest time that a request waits for a server. */
  queueTimeoutMs: number;
  /** The free resources of the host. */
  readHost: () => Host;
  /** Whether running browsers are left for the next process to adopt; `stop` by default. */
  onShutdown?: 'stop' | 'leave';
  /** Milliseconds in which the process ends, this part included; 9,500 by default. */
  shutdownWithinMs?: number;
  /** How long a full server waits for room to replace an outdated browser; 5 min by default. */
  replaceOnFullMs?: number;
  /** Calls the listener at each reconnect to the event store. @returns the function that ends it */
  onLogReconnect: (listener: () => void) => () => void;
  log: Logger;
  /** null: nothing is traced. */
  tracer?: Tracer | null;
  /** Optional parts of it; absent: there are none. */
  parts?: readonly BrowserPart[];
};

export type Provisioner = {
  /**
   * Resolves once the pool is filled (null) or a launch has failed (its message).
   */
  warm(): Promise<string | null>;
  /** What the last reconciliation could not correct; both numbers are to be 0. */
  leaks(): Reconciled['leaks'];
  /** Reconciles now; for a caller that may have missed the end of a browser. */
  reconcileSoon: () => void;
} & AsyncDisposable;

/**
 * The usual bound of a shutdown, and what of it is left for the end of the rest of the process: at
 * most half of a shorter one.
 */
const SHUTDOWN_MS = 9_500;
const REST_MS = 3_500;
/** A start waits this long for the requests that wait already; then it serves what it pulls. */
const KNOWN_WITHIN_MS = 2_000;

/**
 * Runs the browsers of one server: accepts requests while it has room, keeps idle browsers, ends
 * each browser with its session, and reconciles what runs with the log. It joins the fleet after
 * the first reconciliation.
 */
export async function startProvisioner(
  dependencies: ProvisionerDependencies,
): Promise<Provisioner> {
  const { context, browsers, server, log, shutdownWithinMs = SHUTDOWN_MS } = dependencies;
  // Disposed if the start fails: timers and retries would keep the process alive.
  using started = new DisposableStack();
  const givenUp = new AbortController();
  started.defer(() => givenUp.abort());
  // A shutdown begins with these; work under way is finished after them.
  const subscriptions = started.use(new DisposableStack());
  const stop = new AbortController();
  const { signal } = stop;
  subscriptions.defer(() => stop.abort());
  const reporter = createReporter(context, log, givenUp.signal);
  const report = createServerReporter(reporter, server.id);
  const pool = openPool(dependencies, reporter);
  started.defer(() => setClosed(pool));
  browsers.onAvailable?.((isAvailable) => {
    pool.canLaunch = isAvailable;
    pool.changed();
  });
  const waitingSessions = subscriptions.use(watchSessions(dependencies, pool, signal));
  const lease = await holdLease(dependencies.leases, server.id, log);
  started.defer(lease.stopRenewing);
  const autoscaler = startAutoscaler({
    pool,
    readHost: dependencies.readHost,
    report: async (resized) => void (await report({ type: 'ResizePool', ...resized })),
  });
  started.defer(() => void autoscaler[Symbol.asyncDispose]());
  autoscaler.evaluate();
  const reportReconciled = createReconcileReporter(report);
  const reconciler = await reconcileEvery({ ...dependencies, pool, signal }, reportReconciled);
  const { sequence, state } = await report(
    joinCommand(server.ip, browsers, dependencies.limits.max),
  );
  resume(pool, state);
  await reportReconciled(reconciler.last());
  setOpen(pool);
  subscriptions.use(watchStorage(pool, dependencies.storedBytesMax ?? Infinity));
  subscriptions.defer(keepPool(dependencies, pool, report));
  const onLost = () => rejoin(dependencies, pool, report, signal).then(reconciler.soon);
  const onDrained = async () => void (await report({ type: 'ReportDrained' }));
  const following = followOwnServer({ context, pool, after: sequence, signal, onDrained, onLost });
  subscriptions.defer(dependencies.onLogReconnect(reconciler.soon));
  browsers.onAvailable?.((isAvailable) => {
    if (isAvailable) reconciler.soon();
  });
  const workQueue = await openRequests(dependencies, waitingSessions);
  const accepting = acceptRequests({ workQueue, pool, waitingSessions, context, signal });
  const all = started.move();

  async function dispose(): Promise<void> {
    // Disposed last, even if a step before fails.
    using _ = all;
    subscriptions.dispose();
    // Reports that are pending by then are given up; the next start reconciles.
    const reportsWithinMs = Math.max(shutdownWithinMs - REST_MS, shutdownWithinMs / 2);
    const lastReports = setTimeout(() => givenUp.abort(), reportsWithinMs);
    await Promise.all([accepting, reconciler.ended, following, autoscaler[Symbol.asyncDispose]()]);
    await shutDown(dependencies, pool, report, lease);
    clearTimeout(lastReports);
  }
  return {
    warm: () => warm(pool, signal),
    leaks: () => reconciler.last().leaks,
    reconcileSoon: reconciler.soon,
    [Symbol.asyncDispose]: dispose,
  };
}

/**
 * Detaches the pool for the next process, or closes it and leaves the fleet. If a session's end
 * could not be recorded, as with one that only a newer version can read, the server does not report
 * that it leaves: its lease ends, and a timekeeper fails its sessions as those of a lost server.
 */
async function shutDown(
  { browsers, onShutdown, log }: ProvisionerDependencies,
  pool: Pool,
  report: ReportServer,
  lease: Lease,
): Promise<void> {
  const isRestart = onShutdown === 'leave' && (await detachPool(pool));
  const isClosed = isRestart || (await leave(pool));
  if (!isRestart) await browsers[Symbol.asyncDispose]();
  if (isClosed)
    await report({ type: isRestart ? 'Restart' : 'Leave' }).catch((error: unknown) =>
      log.warn({ err: error, isRestart }, 'failed to report the shutdown of this server'),
    );
  else log.warn('a session could not be ended; this server will be declared lost');
  if (isRestart) lease.stopRenewing();
  else await lease[Symbol.asyncDispose]();
}

/**
 * Ends all that the pool has: accepted requests without a browser go back to the work queue.
 * @returns false if the end of a session could not be recorded
 */
async function leave(pool: Pool): Promise<boolean> {
  setClosed(pool);
  await requeueAll(pool, 'the server is shutting down');
  return closePool(pool);
}

/** The pool, with what serves its browsers. */
function openPool(dependencies: ProvisionerDependencies, reporter: Reporter): Pool {
  const { context, browsers, log, parts = [] } = dependencies;
  const { openEgress = refuseEgress, extensionsOf = () => [] } = dependencies;
  const profiles = (dependencies.openProfiles ?? noProfiles)({ browsers, reporter });
  const pool = createPool({
    ...dependencies,
    now: context.now,
    reporter,
    hasOthers: createOtherServersCheck(dependencies),
    parts,
    profiles,
    openEgress,
    extensionsOf,
  });
  for (const part of parts) part.open?.(pool.roster, reporter);
  browsers.onExit((exit) => {
    const { workloadId } = exit;
    handleExit(pool, exit).catch((error: unknown) =>
      log.error({ err: error, workloadId }, 'failed to report the end of a browser'),
    );
  });
  return pool;
}

/** A server without egress. */
const refuseEgress: OpenEgress = () =>
  Promise.reject(new Error('this server opens no egress proxy'));

/** Goes on from what the server's earlier provisioners recorded. */
function resume(pool: Pool, { status, bursts }: ServerState): void {
  applyStatus(pool, status);
  if (bursts !== undefined) pool.arrivals.restore(bursts);
}

/** `areKnown` resolves once the requests from before the start have been read, or cannot be. */
type WatchedSessions = WaitingSessions & { areKnown: Promise<void> } & Disposable;

/**
 * Follows the requests that wait and the ends of this server's sessions until it is disposed of.
 * The requests that wait already are read meanwhile; without them these are served in the order of
 * their arrival.
 */
function watchSessions(
  { context, sessionEvents, queueTimeoutMs, log }: ProvisionerDependencies,
  pool: Pool,
  signal: AbortSignal,
): WatchedSessions {
  const position = sessionEvents.position();
  const waitingSessions = createWaitingSessions(position);
  const since = context.now() - queueTimeoutMs;
  const areKnown = requestsWaitingAt(context.eventStore, { position, since, signal })
    .catch((error: unknown) => {
      if (!signal.aborted) log.warn({ err: error }, 'failed to read the requests that wait');
      return [];
    })
    .then((requests) => waitingSessions.addEarlier(requests));
  const forget = [
    sessionEvents.watchAll((event) => waitingSessions.observe(event)),
    sessionEvents.watchAll((event) => handleSessionEvent(pool, event)),
  ];
  return {
    ...waitingSessions,
    areKnown,
    [Symbol.dispose]: () => forget.forEach((forgetOne) => forgetOne()),
  };
}

/**
 * Opens the work queue once it is known who waits. Items are given back where other organizations
 * come first, so their deliveries have no bound.
 */
async function openRequests(
  { openWorkQueue }: ProvisionerDependencies,
  { areKnown }: WatchedSessions,
) {
  await within(KNOWN_WITHIN_MS, areKnown, () => undefined);
  return openWorkQueue('provisioner', filters.sessionRequests, { isBounded: false });
}

async function warm(pool: Pool, signal: AbortSignal): Promise<string | null> {
  const isWarm = () => pool.roster.counts().idle >= pool.limits.minIdle || isFilled(pool);
  await until(pool, () => isWarm() || pool.lastFailure !== null, signal);
  return isWarm() ? null : pool.lastFailure;
}

/**
 * Whether no further launch is planned. All browsers may be busy with sessions from before the
 * restart.
 */
function isFilled(pool: Pool): boolean {
  return pool.roster.counts().launching === 0 && launchesWanted(poolFacts(pool)) === 0;
}

/**
 * Handles that other servers took this one for lost and failed its sessions: terminates its
 * browsers and joins the fleet again.
 */
async function rejoin(
  dependencies: ProvisionerDependencies,
  pool: Pool,
  report: ReportServer,
  signal: AbortSignal,
): Promise<void> {
  pool.log.error('this server was declared lost; terminating its browsers and joining again');
  setClosed(pool);
  await drainPool(pool, 'server_lost');
  await until(pool, () => pool.roster.ids().size === 0, signal);
  if (signal.aborted) return;
  const { server, browsers, limits } = dependencies;
  const { state } = await report(joinCommand(server.ip, browsers, limits.max));
  applyStatus(pool, state.status);
  setOpen(pool);
}

/** Keeps the pool filled, with browsers of the present build. @returns the function that ends it */
function keepPool(
  { browsers, replaceOnFullMs, log }: ProvisionerDependencies,
  pool: Pool,
  report: ReportServer,
): () => void {
  const stack = new DisposableStack();
  stack.defer(keepFilled(pool));
  stack.defer(replaceOutdated(pool, replaceOnFullMs));
  reportBuilds(browsers, report, log);
  return () => stack.dispose();
}

/** Whether a live server other than the given ones exists; null: that cannot be read. */
function createOtherServersCheck({ views }: ProvisionerDependencies): Pool['hasOthers'] {
  return async (tried) => {
    try {
      const live = await readList<ServerState>(views, projectionId(servers), liveServers);
      return live.some(({ id }) => !tried.includes(id));
    } catch {
      return null;
    }
  };
}
