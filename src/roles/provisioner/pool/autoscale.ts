import type { ServerEvent } from '#events/server.ts';
import type { PoolInputs } from '#events/pool.ts';
import { everyTick } from '#src/kernel/async/ticks.ts';
import { decidePool, isStuck, memoryRoomOf, POLICY } from '#src/kernel/domain/fleet/pool-policy.ts';
import {
  noQuietPeriod,
  quietAfter,
  quietInputs,
  type QuietPeriod,
} from '#src/kernel/domain/fleet/quiet-period.ts';
import { terminateBrowser } from './terminate.ts';
import type { Host } from './host-resources.ts';
import { trackRequeue, requeue } from './launch.ts';
import { poolCounts, poolFacts, unservedRequests, type Pool } from './pool.ts';

/** How often the pool's size is evaluated; arrivals are counted by the second. */
const EVALUATE_EVERY_MS = 1_000;
/**
 * And how soon after an accepted request: before the pool refills, since the browsers of a burst
 * may not be needed again at once.
 */
const EVALUATE_AFTER_ARRIVAL_MS = 50;
const NO_MEMORY = 'the server has no memory left for a launch';
/** A request that nothing can be launched for is requeued for other servers after this. */
const STUCK_MS = 5_000;
/** Expected duration of a launch until the first one has been measured. */
const LAUNCH_MS = 1_000;

type Resized = Extract<ServerEvent, { type: 'server.pool-resized' }>['data'];
export type Autoscaler = {
  /** Reads the host's resources and decides, now. */
  evaluate(): void;
} & AsyncDisposable;

/**
 * Once a second, and after each arrival: reads the host's resources, decides the target number of
 * idle browsers, and retires the surplus. It launches nothing itself: the pool fills up to the
 * target. Each changed decision is reported with its inputs. Reports go one at a time; of the
 * decisions made meanwhile only the last is reported.
 */
export function startAutoscaler(dependencies: {
  pool: Pool;
  readHost: () => Host;
  report: (resized: Resized) => Promise<void>;
}): Autoscaler {
  const { pool, readHost, report } = dependencies;
  let quiet = noQuietPeriod;
  let stuckSince: number | null = null;
  let unreported: Resized | null = null;
  let reporting: Promise<void> | null = null;

  async function reportAll(): Promise<void> {
    for (let next = unreported; next !== null; next = unreported) {
      unreported = null;
      await report(next).catch((error: unknown) =>
        pool.log.warn({ err: error }, 'failed to report the resized pool'),
      );
    }
    reporting = null;
  }
  function decide(): void {
    const host = readHost();
    const roomBefore = memoryRoomOf(poolFacts(pool));
    pool.host = host;
    // The free bytes differ each second; what waits for memory waits for that of a browser.
    const hasChanged = memoryRoomOf(poolFacts(pool)) !== roomBefore;
    const inputs = inputsOf(pool, quiet);
    const decision = decidePool(inputs);
    quiet = quietAfter(quiet, inputs, decision, performance.now());
    const { target, limitedBy } = decision;
    const isNew = target !== inputs.target || limitedBy !== inputs.limitedBy;
    if (isNew && pool.isOpen) {
      pool.size = { target, limitedBy };
      pool.log.info({ ...inputs, bursts: undefined, ...decision }, 'pool resized');
      unreported = { policy: POLICY, inputs, decision };
      reporting ??= reportAll();
    }
    if (pool.canLaunch) retireIdle(pool, decision.retire);
    if (isNew || hasChanged) pool.changed();
    requeueStuck();
  }
  /** Requeues one request per `STUCK_MS`: the memory may suffice for the next one. */
  function requeueStuck(): void {
    const [request] = unservedRequests(pool);
    if (request === undefined || !pool.isOpen || !pool.canLaunch || !isStuck(poolFacts(pool))) {
      stuckSince = null;
      return;
    }
    stuckSince ??= performance.now();
    if (performance.now() - stuckSince < STUCK_MS) return;
    stuckSince = null;
    trackRequeue(pool, requeue(pool, request, NO_MEMORY)).catch((error: unknown) =>
      pool.log.error({ err: error, session: request.identity }, 'failed to requeue a request'),
    );
  }
  function evaluate(): void {
    try {
      decide();
    } catch (error) {
      pool.log.error({ err: error }, 'autoscaler evaluation failed');
    }
  }
  const ticking = everyTick(EVALUATE_EVERY_MS, evaluate);
  const forget = afterArrivals(pool, evaluate);
  return {
    evaluate,
    async [Symbol.asyncDispose]() {
      ticking[Symbol.dispose]();
      forget();
      await reporting;
    },
  };
}

function retireIdle(pool: Pool, count: number): void {
  for (let retired = 0; retired < count; retired += 1) {
    const pooled = pool.roster.longestIdle();
    if (pooled === null) return;
    terminateBrowser(pool, pooled, 'retired').catch((error: unknown) =>
      pool.log.error({ err: error, workloadId: pooled.workloadId }, 'failed to retire a browser'),
    );
  }
}

/**
 * Calls back soon after each accepted request; once for those that come together.
 * @returns the function that ends it
 */
function afterArrivals(pool: Pool, evaluate: () => void): () => void {
  let seen = pool.arrivals.total();
  let timer: NodeJS.Timeout | null = null;
  const forget = pool.onChange(() => {
    if (pool.arrivals.total() === seen) return;
    seen = pool.arrivals.total();
    timer ??= setTimeout(() => {
      timer = null;
      evaluate();
    }, EVALUATE_AFTER_ARRIVAL_MS);
  });
  return () => {
    forget();
    if (timer !== null) clearTimeout(timer);
  };
}

function inputsOf(pool: Pool, quiet: QuietPeriod): PoolInputs {
  const { limits, arrivals, launchTimes, host, size } = pool;
  return {
    isDraining: pool.isDraining,
    ...poolCounts(pool),
    arrivals10s: arrivals.last(10),
    arrivals60s: arrivals.last(60),
    launchMs: median(launchTimes) ?? LAUNCH_MS,
    ...limits,
    ...host,
    ...size,
    ...quietInputs(quiet, performance.now()),
    now: pool.now(),
    bursts: arrivals.bursts(),
  };
}

function median(values: readonly number[]): number | null {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? null;
}
