import type { ServerState } from '#events/server.ts';
import { filters } from '#events/subjects.ts';
import { idOf } from '#projections/projection.ts';
import { readList } from '#projections/store/queries.ts';
import { liveServers, servers } from '#projections/servers.ts';
import type { Views } from '#projections/store/views.ts';
import { launchesWanted } from '#src/domain/fleet/pool-policy.ts';
import type { ServerCommand } from '#src/domain/fleet/server.ts';
import { causeBy } from '#src/commands/metadata.ts';
import type { Desk, Handled } from '#src/commands/handle-command.ts';
import { LEASE_MS, type Leases } from '#src/messaging/leases.ts';
import type { Tail } from '#src/event-store/session-events.ts';
import type { Log } from '#src/telemetry/logger.ts';
import type { Tracer } from '#src/telemetry/tracer.ts';
import { startAutoscaler } from './pool/autoscale.ts';
import type { Browsers } from './browsers/browsers.ts';
import {
  browserExited,
  closePool,
  emptyPool,
  leavePool,
  sessionNoticed,
} from './pool/terminate.ts';
import type { Host } from './pool/host-resources.ts';
import { keepFilled } from './pool/launch.ts';
import { applyStatus, followOwnServer } from './own-server.ts';
import { createPool, factsOf, until, type Pool, type PoolLimits } from './pool/pool.ts';
import { reconcileEvery, type Reconciled } from './reconcile/reconcile.ts';
import { createReporter, type Reporter } from './reporter.ts';
import { takeRequests } from './pool/accept-requests.ts';

export type ProvisionerParts = {
  desk: Desk;
  views: Views;
  leases: Leases;
  tail: Tail;
  browsers: Browsers;
  server: { id: string; ip: string };
  vncPasswordOf: (workloadId: string) => string;
  limits: PoolLimits;
  /** What the machine can still bear. */
  readHost: () => Promise<Host>;
  /** Whether browsers that outlive this process are left to the next one; by default they end. */
  onShutdown?: 'stop' | 'leave';
  /** Calls the listener whenever the log is back, until the function it returns is called. */
  onLogReconnect: (listener: () => void) => () => void;
  log: Log;
  /** null: nothing is traced. */
  tracer?: Tracer | null;
};

export type Provisioner = {
  /**
   * Resolves once as many browsers wait as should (null), or a launch has failed (with what it
   * said).
   */
  warm(): Promise<string | null>;
  /** What the last comparison of log and machine left amiss; both numbers are to be 0. */
  leaks(): Reconciled['leaks'];
  /** Holds what runs against the log now; for whoever may have missed an end of a browser. */
  reconcileSoon: () => void;
} & AsyncDisposable;

/**
 * What is still to be told when the process ends is given up after this; the next start compares.
 */
const LAST_REPORTS_MS = 6_000;

/**
 * The browsers of one server: takes requests when it can serve them, keeps browsers waiting, ends
 * them when their session does, and holds what runs against what the log says. It joins the fleet
 * once that is in order.
 */
export async function startProvisioner(parts: ProvisionerParts): Promise<Provisioner> {
  const { desk, browsers, server, tail, log } = parts;
  // What goes on by itself would outlive a start that fails, and keep its process from its end.
  using begun = new DisposableStack();
  const givenUp = new AbortController();
  begun.defer(() => givenUp.abort());
  // An end that was asked for begins with these, and sees to what is under way.
  const hearing = begun.use(new DisposableStack());
  const stop = new AbortController();
  const { signal } = stop;
  hearing.defer(() => stop.abort());
  const reporter = createReporter(desk, log, givenUp.signal);
  const tell = createTeller(reporter, server.id);
  const pool = createPool({ ...parts, now: desk.now, reporter, hasOthers: othersOf(parts) });
  browsers.onExit((exit) => {
    browserExited(pool, exit).catch((error: unknown) =>
      log.error({ err: error, workloadId: exit.workloadId }, 'an exit was not told'),
    );
  });
  browsers.onAvailable?.((isAvailable) => {
    pool.canLaunch = isAvailable;
    pool.changed();
  });
  hearing.defer(tail.watchAll((event) => sessionNoticed(pool, event)));
  const lease = await holdLease(parts.leases, server.id, log);
  begun.defer(lease.letRun);
  const autoscaler = startAutoscaler({
    pool,
    readHost: parts.readHost,
    tell: async (resized) => void (await tell({ type: 'ResizePool', ...resized })),
  });
  begun.defer(() => void autoscaler[Symbol.asyncDispose]());
  await autoscaler.think();
  const comparing = { desk, views: parts.views, pool, signal };
  const tellFound = createLeakTeller(tell);
  const reconciler = await reconcileEvery(comparing, tellFound);
  const { sequence, state } = await tell(joined(parts));
  applyStatus(pool, state.status);
  await tellFound(reconciler.last());
  begun.defer(() => (pool.isOpen = false));
  pool.isOpen = true;
  hearing.defer(keepFilled(pool));
  const onLost = () => startOver(parts, pool, tell, signal).then(reconciler.soon);
  const onDrained = async () => void (await tell({ type: 'ReportDrained' }));
  const following = followOwnServer({ desk, pool, after: sequence, signal, onDrained, onLost });
  hearing.defer(parts.onLogReconnect(reconciler.soon));
  browsers.onAvailable?.((isAvailable) => {
    if (isAvailable) reconciler.soon();
  });
  const inbox = await desk.log.inbox('provisioner', filters.sessionRequests);
  const taking = takeRequests({ inbox, pool, desk, signal });
  const all = begun.move();

  async function dispose(): Promise<void> {
    // Last, and whatever else fails.
    using _ = all;
    hearing.dispose();
    const lastReports = setTimeout(() => givenUp.abort(), LAST_REPORTS_MS);
    await Promise.all([taking, reconciler.ended, following, autoscaler[Symbol.asyncDispose]()]);
    await endPart(parts, pool, tell, lease);
    clearTimeout(lastReports);
  }
  return {
    warm: () => warm(pool, signal),
    leaks: () => reconciler.last().leaks,
    reconcileSoon: reconciler.soon,
    [Symbol.asyncDispose]: dispose,
  };
}

/** The end of this process's part, and of the server's where no browser is left to the next one. */
async function endPart(
  { browsers, onShutdown, log }: ProvisionerParts,
  pool: Pool,
  tell: Tell,
  lease: Lease,
): Promise<void> {
  const isToBeBack = onShutdown === 'leave' && (await leavePool(pool));
  if (!isToBeBack) {
    await closePool(pool);
    await browsers[Symbol.asyncDispose]();
  }
  await tell({ type: isToBeBack ? 'Restart' : 'Leave' }).catch((error: unknown) =>
    log.warn({ err: error, isToBeBack }, 'the log does not know that this server has ended'),
  );
  if (isToBeBack) lease.letRun();
  else await lease[Symbol.asyncDispose]();
}

async function warm(pool: Pool, signal: AbortSignal): Promise<string | null> {
  const isWarm = () => pool.roster.counts().idle >= pool.limits.minIdle || isFilled(pool);
  await until(pool, () => isWarm() || pool.lastFailure !== null, signal);
  return isWarm() ? null : pool.lastFailure;
}

/**
 * All it may launch is there: what waits for none may all be in use, by requests of before the
 * start.
 */
function isFilled(pool: Pool): boolean {
  return pool.roster.counts().launching === 0 && launchesWanted(factsOf(pool)) === 0;
}

/**
 * The others took this server for lost, and have failed its sessions: it ends what it has and
 * begins anew.
 */
async function startOver(
  parts: ProvisionerParts,
  pool: Pool,
  tell: Tell,
  signal: AbortSignal,
): Promise<void> {
  pool.log.error('this server was taken for lost; it ends its browsers and joins anew');
  pool.isOpen = false;
  await emptyPool(pool, 'server_lost');
  await until(pool, () => pool.roster.ids().size === 0, signal);
  if (signal.aborted) return;
  const { state } = await tell(joined(parts));
  applyStatus(pool, state.status);
  pool.isOpen = true;
  pool.changed();
}

/** Gives the lease up when it is disposed. */
type Lease = {
  /** Renews it no more, and does not give it up. */
  letRun: () => void;
} & AsyncDisposable;

/** Takes the server's lease and renews it until it is done with. */
async function holdLease(leases: Leases, serverId: string, log: Log): Promise<Lease> {
  await leases.renew(serverId);
  const beat = setInterval(() => {
    leases
      .renew(serverId)
      .catch((error: unknown) => log.warn({ err: error }, 'the lease was not renewed'));
  }, LEASE_MS / 3);
  return {
    letRun: () => clearInterval(beat),
    async [Symbol.asyncDispose]() {
      clearInterval(beat);
      await leases.release(serverId).catch(() => undefined);
    },
  };
}

function joined({ server, browsers, limits }: ProvisionerParts): ServerCommand {
  return { type: 'Join', ip: server.ip, browsers: browsers.kind, poolMax: limits.max };
}

type Tell = (command: ServerCommand) => Promise<Handled<'server'>>;

function createTeller(reporter: Reporter, serverId: string): Tell {
  return (command) => reporter.server(serverId, command, causeBy(`provisioner/${serverId}`));
}

/** Told the first time, where something was put right, and where another number is amiss. */
function createLeakTeller(tell: Tell): (reconciled: Reconciled) => Promise<void> {
  let told = '';
  return async (reconciled) => {
    const { adopted, stopped, failed, corrected, leaks } = reconciled;
    const amiss = `${leaks.browsers} ${leaks.sessions}`;
    if (adopted + stopped + failed + corrected === 0 && amiss === told) return;
    await tell({ type: 'ReportReconciled', ...reconciled });
    told = amiss;
  };
}

/** Whether a live server but the given ones is there; no where that cannot be known. */
function othersOf({ views }: ProvisionerParts): Pool['hasOthers'] {
  return async (tried) => {
    try {
      const live = await readList<ServerState>(views, idOf(servers), liveServers);
      return live.some(({ id }) => !tried.includes(id));
    } catch {
      return false;
    }
  };
}
