import type { PoolBursts, PoolLimit } from '#events/pool.ts';
import { createAgenda, type Agenda } from './agenda.ts';
import { noBursts, noteRequest } from './bursts.ts';
import { createFigures, type PoolFigures } from './pool-figures.ts';
import { decidePool, launchesWanted, requestsWanted, type PoolFacts } from './pool-policy.ts';
import { noQuietPeriod, quietAfter, quietInputs } from './quiet-period.ts';

/** A request for a browser, and for how long its session has the browser; milliseconds. */
export type SimulatedRequest = { at: number; durationMs: number };

export type SimulatedLimits = {
  minIdle: number;
  maxIdle: number;
  max: number;
  launchesAtOnce: number;
  /** Duration of each launch, milliseconds. */
  launchMs: number;
};

export type Simulation = {
  /** In the order of their times, milliseconds since the epoch. */
  requests: readonly SimulatedRequest[];
  limits: SimulatedLimits;
  policy: number;
  /** The figures count from here on; default: the first request. */
  countFrom?: number;
  /** And up to here; default: the last request. */
  until?: number;
};

/** As in the provisioner: between decisions, from an assignment to its replacement's launch. */
const EVALUATE_EVERY_MS = 1_000;
const EVALUATE_AFTER_ARRIVAL_MS = 50;
const REFILL_AFTER_MS = 150;
const SETTLE_MS = 120;
/** From the end of a session until its browser is gone. */
const END_MS = 100;
/** Requests that wait at the end are given up after this; they count as having waited that long. */
const DRAIN_MAX_MS = 60 * 60_000;

type Step = 'launched' | 'settled' | 'release' | 'ended' | 'refill' | 'evaluate';

type SimulatedPool = {
  readonly limits: SimulatedLimits;
  readonly policy: number;
  readonly agenda: Agenda<Step>;
  readonly figures: ReturnType<typeof createFigures>;
  now: number;
  readonly browsers: { idle: number; launching: number; busy: number; ending: number };
  /** Requests that the pool has not accepted, and accepted ones that have no browser. */
  readonly queue: SimulatedRequest[];
  readonly waiting: SimulatedRequest[];
  /** Times of the accepted requests of the last minute. */
  accepted: number[];
  bursts: PoolBursts;
  quiet: typeof noQuietPeriod;
  size: { target: number; limitedBy: PoolLimit };
  isRefillPlanned: boolean;
  isEvaluationPlanned: boolean;
};

/**
 * Runs requests through a pool whose size a policy decides, as the provisioner does, in simulated
 * time. All requests have the default options, each launch takes the same time and none fails.
 */
export function simulatePool({ requests, limits, policy, ...range }: Simulation): PoolFigures {
  const { countFrom = requests[0]?.at ?? 0, until = requests.at(-1)?.at ?? 0 } = range;
  const begin = Math.min(countFrom, requests[0]?.at ?? countFrom);
  const figures = createFigures(countFrom, until);
  const pool: SimulatedPool = {
    limits,
    policy,
    agenda: createAgenda(),
    figures,
    now: begin,
    browsers: { idle: limits.minIdle, launching: 0, busy: 0, ending: 0 },
    queue: [],
    waiting: [],
    accepted: [],
    bursts: noBursts,
    quiet: noQuietPeriod,
    size: { target: limits.minIdle, limitedBy: null },
    isRefillPlanned: false,
    isEvaluationPlanned: false,
  };
  let [nextRequest, nextTick] = [0, begin];
  for (;;) {
    const request = requests[nextRequest];
    const at = Math.min(pool.agenda.nextAt(), request?.at ?? Infinity, nextTick);
    // Requests that still wait are served after the end of the time that counts.
    const isDone = request === undefined && pool.queue.length + pool.waiting.length === 0;
    if (at > until && (isDone || at > until + DRAIN_MAX_MS)) break;
    figures.pass(pool.now, at, pool.browsers);
    pool.now = at;
    let step: Step | null = null;
    if (at === request?.at) {
      pool.queue.push(request);
      nextRequest += 1;
    } else if (at === nextTick) {
      nextTick += EVALUATE_EVERY_MS;
      evaluate(pool);
    } else step = pool.agenda.next();
    if (step !== null) steps[step](pool);
    accept(pool);
    fill(pool, step === 'refill');
  }
  figures.pass(pool.now, until, pool.browsers);
  for (const { at } of [...pool.waiting, ...pool.queue]) figures.served(at, pool.now - at);
  return figures.close();
}

const steps: Record<Step, (pool: SimulatedPool) => void> = {
  launched(pool) {
    if (pool.waiting.length > 0) offer(pool);
    else pool.agenda.add(pool.now + SETTLE_MS, 'settled');
  },
  settled: offer,
  release: (pool) => end(pool, 'busy'),
  ended: ({ browsers }) => void (browsers.ending -= 1),
  refill: (pool) => void (pool.isRefillPlanned = false),
  evaluate(pool) {
    pool.isEvaluationPlanned = false;
    evaluate(pool);
  },
};

function factsOf({ browsers, waiting, limits, size }: SimulatedPool): PoolFacts {
  const unserved = waiting.length - browsers.launching;
  return {
    isDraining: false,
    ...browsers,
    waiting: waiting.length,
    unserved: Math.max(0, unserved),
    spare: Math.max(0, -unserved),
    max: limits.max,
    launchesAtOnce: limits.launchesAtOnce,
    memoryFreeBytes: null,
    browserBytes: 0,
    ...size,
  };
}

function evaluate(pool: SimulatedPool): void {
  const { limits, policy, quiet, now, bursts } = pool;
  pool.accepted = pool.accepted.filter((at) => at > now - 60_000);
  const inputs = {
    ...factsOf(pool),
    ...limits,
    cpuPressure: null,
    arrivals10s: pool.accepted.filter((at) => at > now - 10_000).length,
    arrivals60s: pool.accepted.length,
    ...quietInputs(quiet, now),
    now,
    bursts,
  };
  const decision = decidePool(inputs, policy);
  pool.quiet = quietAfter(quiet, inputs, decision, now);
  pool.size = { target: decision.target, limitedBy: decision.limitedBy };
  for (let retired = 0; retired < decision.retire; retired += 1) end(pool, 'idle');
}

function end({ browsers, agenda, now }: SimulatedPool, phase: 'idle' | 'busy'): void {
  browsers[phase] -= 1;
  browsers.ending += 1;
  agenda.add(now + END_MS, 'ended');
}

function serve(pool: SimulatedPool, { at, durationMs }: SimulatedRequest): void {
  pool.browsers.busy += 1;
  pool.figures.served(at, pool.now - at);
  pool.agenda.add(pool.now + durationMs, 'release');
}

/** The longest waiting request gets a launched browser, or the browser becomes idle. */
function offer(pool: SimulatedPool): void {
  const next = pool.waiting.shift();
  pool.browsers.launching -= 1;
  if (next === undefined) pool.browsers.idle += 1;
  else serve(pool, next);
}

function accept(pool: SimulatedPool): void {
  const { browsers, queue, waiting, agenda, now } = pool;
  while (requestsWanted(factsOf(pool)) > 0) {
    const request = queue.shift();
    if (request === undefined) return;
    pool.accepted.push(now);
    pool.bursts = noteRequest(pool.bursts, now);
    if (!pool.isEvaluationPlanned) agenda.add(now + EVALUATE_AFTER_ARRIVAL_MS, 'evaluate');
    pool.isEvaluationPlanned = true;
    if (browsers.idle === 0 || waiting.length > 0) waiting.push(request);
    else {
      browsers.idle -= 1;
      serve(pool, request);
    }
  }
}

function fill(pool: SimulatedPool, isDue: boolean): void {
  const { browsers, waiting, agenda, limits, now } = pool;
  if (launchesWanted(factsOf(pool)) === 0) return;
  const isAtOnce = waiting.length > 0 || browsers.busy + browsers.ending === 0;
  if (!isAtOnce && !isDue) {
    if (!pool.isRefillPlanned) agenda.add(now + REFILL_AFTER_MS, 'refill');
    pool.isRefillPlanned = true;
    return;
  }
  for (let left = launchesWanted(factsOf(pool)); left > 0; left -= 1) {
    browsers.launching += 1;
    agenda.add(now + limits.launchMs, 'launched');
  }
}
