import type { RecordedOf } from '#events/events.ts';
import type { PoolLimit } from '#events/pool.ts';
import type { BrowserOptions } from '#events/session.ts';
import type { PoolFacts } from '#src/domain/fleet/pool-policy.ts';
import type { WorkloadCommand } from '../../domain/fleet/workload.ts';
import type { Cause } from '#events/envelope.ts';
import type { SessionIdentity } from '#src/domain/session/session.ts';
import type { Log } from '#src/telemetry/logger.ts';
import type { Tracer } from '#src/telemetry/tracer.ts';
import { createArrivals, type Arrivals } from './arrivals.ts';
import type { Browsers } from '../browsers/browsers.ts';
import type { Host } from './host-resources.ts';
import type { Reporter } from '../reporter.ts';
import { matchLaunches } from './options.ts';
import { createRoster, type Member, type Roster } from './roster.ts';

/** A session this server has taken on that has no browser yet. */
export type Waiting = {
  identity: SessionIdentity;
  /** The request, as the cause of what follows. */
  event: RecordedOf<'session'>;
  /** What its browser is to be launched as. */
  options: BrowserOptions;
  /** Launches that failed while it was the next to be served. */
  failures: number;
  /** Resolves when the log knows that it is this server's. */
  assigned: Promise<unknown>;
};

/** What a server may have. */
export type PoolLimits = {
  minIdle: number;
  maxIdle: number;
  max: number;
  /** Launches that may run at once: one a core, since a launch is one core's work. */
  launchesAtOnce: number;
  /** What a browser is expected to take of the memory. */
  browserBytes: number;
};

/**
 * The browsers of one server and the requests that wait for them. Decisions are made at once, on
 * what is in memory; the log is told in order, and holds the truth when this process ends.
 * `launch.ts`, `serve.ts` and `end.ts` say what happens to it.
 */
export type Pool = {
  readonly server: { id: string; ip: string };
  readonly browsers: Browsers;
  readonly reporter: Reporter;
  readonly log: Log;
  /** null: nothing is traced. */
  readonly tracer?: Tracer | null;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly vncPasswordOf: (workloadId: string) => string;
  readonly limits: PoolLimits;
  /** True where a live server beside those given may launch what this one cannot. */
  readonly hasOthers: (tried: readonly string[]) => Promise<boolean>;
  readonly roster: Roster;
  readonly waiting: Waiting[];
  readonly arrivals: Arrivals;
  /** Milliseconds that the last good launches took. */
  readonly launchTimes: number[];
  /** Requests that have been pulled and are being looked up. */
  taking: number;
  /** Browsers that are to wait, and what keeps more from being launched: the last decision. */
  size: { target: number; limitedBy: PoolLimit };
  /** The machine as of a second ago. */
  host: Host;
  /** Nothing is taken and nothing waits; who runs goes on. */
  isDraining: boolean;
  /** False before the server has joined and once it leaves: nothing is launched or taken. */
  isOpen: boolean;
  /** False while the machine can launch and end nothing: what waits is given away, no more. */
  canLaunch: boolean;
  /** Failed launches since the last good one, and what the last of them said. */
  failedLaunches: number;
  lastFailure: string | null;
  /** Tells everyone who waits that something has changed. */
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
    | 'tracer'
    | 'now'
    | 'vncPasswordOf'
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
    arrivals: createArrivals(),
    launchTimes: [],
    taking: 0,
    size: { target: given.limits.minIdle, limitedBy: null },
    host: { memoryFreeBytes: null, cpuPressure: null },
    isDraining: false,
    isOpen: false,
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

/** The requests that no launch under way is for, longest waiting first. */
export function unservedOf(pool: Pool): Waiting[] {
  return matched(pool).unserved;
}

/** The browsers and the requests of the pool, counted. */
export function countsOf(pool: Pool) {
  const { unserved, spare } = matched(pool);
  const { roster, waiting } = pool;
  return { ...roster.counts(), spare, waiting: waiting.length, unserved: unserved.length };
}

function matched({ roster, waiting }: Pool) {
  const launching = roster.all().filter(({ phase }) => phase === 'launching');
  return matchLaunches(
    waiting,
    launching.map(({ options }) => options),
  );
}

/** What is decided on whether to launch and to take, now. */
export function factsOf(pool: Pool): PoolFacts {
  const { limits, host, isDraining, size, canLaunch } = pool;
  return {
    isDraining,
    ...countsOf(pool),
    // No room for another.
    max: canLaunch ? limits.max : 0,
    launchesAtOnce: limits.launchesAtOnce,
    browserBytes: limits.browserBytes,
    memoryFreeBytes: host.memoryFreeBytes,
    target: isDraining ? 0 : size.target,
    limitedBy: size.limitedBy,
  };
}

/** Resolves once the condition holds: now, or after some change; or when the signal aborts. */
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

/**
 * Tells the log about a browser, after all that was told of it before. Resolves when it is told.
 */
export function report(
  pool: Pool,
  member: Member,
  command: WorkloadCommand,
  cause: Cause,
): Promise<void> {
  const told = member.reports
    .then(() => pool.reporter.workload(member.workloadId, command, cause))
    .catch((error: unknown) =>
      pool.log.error({ err: error, workloadId: member.workloadId }, 'a report was not told'),
    );
  member.reports = told;
  return told;
}
