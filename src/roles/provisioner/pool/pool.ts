import type { EventWithState } from '#events/events.ts';
import type { PoolLimit } from '#events/pool.ts';
import type { SessionState } from '#events/session.ts';
import {
  nextOrganization,
  noShares,
  serve,
  WEIGHT_MIN,
  type Shares,
} from '#src/kernel/domain/fleet/fair-queue.ts';
import type { PoolFacts } from '#src/kernel/domain/fleet/pool-policy.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Tracer } from '#src/kernel/telemetry/tracer.ts';
import { createArrivals, type Arrivals } from './arrivals.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import type { Host } from './host-resources.ts';
import type { ExtensionsOf } from '#src/browsers/extensions/extension-source.ts';
import type { Reporter } from '#src/commands/reporter.ts';
import type { OpenEgress } from '#src/browsers/egress-endpoint.ts';
import type { BrowserPart } from '../browser-part.ts';
import type { Profiles } from '../profiles.ts';
import { DEFAULTS, isSame, matchLaunches, type LaunchOptions } from './options.ts';
import { createRoster, type PooledBrowser, type Roster } from './roster.ts';

/** An accepted request whose session has no browser yet. */
export type WaitingRequest = {
  identity: SessionIdentity;
  /** The request: the cause in the metadata of all events that follow from it. */
  event: EventWithState<'session'>;
  /** The options its browser is to be launched with. */
  options: LaunchOptions;
  /** Failed launches while it was the next request to get a browser. */
  failures: number;
  /** The session's state once `session.assigned` has been appended; null: it could not be. */
  assigned: Promise<SessionState | null>;
};

/** Limits of a server's pool. */
export type PoolLimits = {
  minIdle: number;
  maxIdle: number;
  max: number;
  /** Launches that may run at once: one per core, since a launch keeps one core busy. */
  launchesAtOnce: number;
  /** Expected memory of one browser. */
  browserBytes: number;
};

/**
 * The browsers of one server and the requests that wait for them. Decisions are made on this state
 * in memory and reported to the log in order; the log is the truth once this process has ended.
 * `accept-requests.ts`, `assign-browser.ts`, `launch.ts`, `rollover.ts` and `terminate.ts` change
 * it.
 */
export type Pool = {
  readonly server: { id: string; ip: string };
  readonly browsers: Browsers;
  readonly reporter: Reporter;
  readonly log: Logger;
  readonly profiles: Profiles;
  /** null: nothing is traced. */
  readonly tracer?: Tracer | null;
  /** Its optional parts. */
  readonly parts: readonly BrowserPart[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly vncPasswordOf: (workloadId: string) => string;
  /** Opens the proxy of a browser whose session has egress rules. */
  readonly openEgress: OpenEgress;
  /** The extensions of an organization that a browser is launched with. */
  readonly extensionsOf: ExtensionsOf;
  readonly limits: PoolLimits;
  /**
   * Whether there is a live server that is not among the given ids and may launch instead; null:
   * that cannot be read.
   */
  readonly hasOthers: (tried: readonly string[]) => Promise<boolean | null>;
  readonly roster: Roster;
  readonly waiting: WaitingRequest[];
  /** Which organization's request gets the next launched browser. */
  turns: Shares;
  readonly arrivals: Arrivals;
  /** Durations of the last successful launches, milliseconds. */
  readonly launchTimes: number[];
  /** Pulled requests whose session is being read before it gets a browser. */
  lookups: number;
  /** Requests that are being given back to the work queue, each until that is stored. */
  readonly requeues: Set<Promise<void>>;
  /** True: a browser could not be removed before the pool closed, so its end is not recorded. */
  hasUnreportedEnd: boolean;
  /** The autoscaler's last decision: target of idle browsers, and what limits it. */
  size: { target: number; limitedBy: PoolLimit };
  /** Browsers to keep idle beyond the target while outdated ones are replaced: 0 or 1. */
  replacing: number;
  /** The host's resources at the last evaluation, at most a second ago. */
  host: Host;
  /** True: no request is accepted and no browser waits idle; running sessions go on. */
  isDraining: boolean;
  /** False before the server has joined and once it leaves: no launch, no accepted request. */
  isOpen: boolean;
  /**
   * True once the server leaves, or was declared lost until it has joined again: a browser that
   * cannot be removed is left to reconciliation then.
   */
  isClosed: boolean;
  /** False while no browser can be launched or ended; idle browsers are still assigned. */
  canLaunch: boolean;
  /** Failed launches since the last successful one, and the message of the last failure. */
  failedLaunches: number;
  lastFailure: string | null;
  /** Calls the listeners: the state has changed. */
  changed(): void;
  /** Calls the listener after each change until the returned function is called. */
  onChange(listener: () => void): () => void;
};

export function createPool(
  given: Pick<
    Pool,
    | 'server'
    | 'browsers'
    | 'reporter'
    | 'log'
    | 'profiles'
    | 'tracer'
    | 'parts'
    | 'now'
    | 'vncPasswordOf'
    | 'openEgress'
    | 'extensionsOf'
    | 'limits'
    | 'hasOthers'
  >,
): Pool {
  const listeners = new Set<() => void>();
  function changed(): void {
    for (const listener of listeners) listener();
  }
  return {
    ...given,
    roster: createRoster(changed),
    waiting: [],
    turns: noShares,
    arrivals: createArrivals(given.now),
    launchTimes: [],
    lookups: 0,
    requeues: new Set(),
    hasUnreportedEnd: false,
    size: { target: given.limits.minIdle, limitedBy: null },
    replacing: 0,
    host: { memoryFreeBytes: null, cpuPressure: null },
    isDraining: false,
    isOpen: false,
    isClosed: false,
    canLaunch: true,
    failedLaunches: 0,
    lastFailure: null,
    changed,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The waiting requests without a launch under way, longest waiting first. */
export function unservedRequests(pool: Pool): WaitingRequest[] {
  return matchWaiting(pool).unserved;
}

/** Counts of the pool's browsers by phase and of its requests. */
export function poolCounts(pool: Pool) {
  const { unserved, spare } = matchWaiting(pool);
  const { roster, waiting } = pool;
  return { ...roster.counts(), spare, waiting: waiting.length, unserved: unserved.length };
}

function matchWaiting(pool: Pool) {
  return matchLaunches(pool.waiting, launchesOf(pool));
}

function launchesOf({ roster }: Pool): PooledBrowser[] {
  return roster.all().filter(({ phase }) => phase === 'launching');
}

/**
 * The request to launch for next, and the launches under way for its organization. It is one of an
 * organization with the fewest launches under way here, so that none keeps all cores busy while
 * others wait; of those, by turns.
 */
export function nextToLaunch(pool: Pool): { request: WaitingRequest; launches: number } | null {
  const unserved = unservedRequests(pool);
  const launches = new Map(unserved.map(({ identity }) => [identity.organizationId, 0]));
  for (const { launchedFor } of launchesOf(pool))
    if (launchedFor !== null && launches.has(launchedFor))
      launches.set(launchedFor, (launches.get(launchedFor) ?? 0) + 1);
  const fewest = Math.min(...launches.values());
  const candidates = [...launches.keys()].filter((id) => launches.get(id) === fewest);
  const next = nextOrganization(pool.turns, candidates);
  const request = unserved.find(({ identity }) => identity.organizationId === next);
  return request === undefined ? null : { request, launches: fewest };
}

/**
 * Removes from the waiting requests the one that gets a browser with these options next: by turns
 * of the organizations, the longest waiting one of each; null: none wants it.
 */
export function takeNextFor(pool: Pool, options: LaunchOptions): WaitingRequest | null {
  const wanting = pool.waiting.filter((request) => isSame(request.options, options));
  const organizations = new Set(wanting.map(({ identity }) => identity.organizationId));
  const organizationId = nextOrganization(pool.turns, organizations);
  const next = wanting.find(({ identity }) => identity.organizationId === organizationId);
  if (organizationId === null || next === undefined) return null;
  const weight = next.event.state.queueWeight ?? WEIGHT_MIN;
  pool.turns = serve(pool.turns, organizationId, weight, organizations);
  pool.waiting.splice(pool.waiting.indexOf(next), 1);
  return next;
}

/**
 * Launches that are not wanted any more: begun for a request that has gone, of use to no other one,
 * and beyond the target of idle browsers. The newest come first.
 */
export function unwantedLaunches(pool: Pool): PooledBrowser[] {
  const { left, spare } = matchWaiting(pool);
  const target = pool.isDraining ? 0 : pool.size.target;
  let surplus = spare - Math.max(0, target - pool.roster.counts().idle);
  return left.toReversed().filter(({ launchedFor, options }) => {
    if (launchedFor === null) return false;
    if (!isSame(options, DEFAULTS)) return true;
    surplus -= 1;
    return surplus >= 0;
  });
}

/** The inputs of the decisions to launch and to accept requests. */
export function poolFacts(pool: Pool): PoolFacts {
  const { limits, host, isDraining, size, replacing, canLaunch } = pool;
  return {
    isDraining,
    ...poolCounts(pool),
    // While nothing can be launched there is no room.
    max: canLaunch ? limits.max : 0,
    launchesAtOnce: limits.launchesAtOnce,
    browserBytes: limits.browserBytes,
    memoryFreeBytes: host.memoryFreeBytes,
    target: isDraining ? 0 : size.target + replacing,
    limitedBy: size.limitedBy,
  };
}

/** Resolves once the condition holds (now or after a change of the pool) or the signal aborts. */
export async function until(
  pool: Pool,
  condition: () => boolean,
  signal?: AbortSignal,
): Promise<void> {
  if (condition() || signal?.aborted === true) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const forget = pool.onChange(() => condition() && resolve());
  const aborted = () => resolve();
  signal?.addEventListener('abort', aborted, { once: true });
  await promise;
  forget();
  signal?.removeEventListener('abort', aborted);
}
