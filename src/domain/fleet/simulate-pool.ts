import type { PoolBursts, PoolLimit } from '#events/pool.ts';
import { noBursts, noteRequest } from './bursts.ts';
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

/** How a pool did over a time. */
export type PoolFigures = {
  creates: number;
  /** Creates that an idle browser served at once. */
  warm: number;
  /** How long creates waited for their browser, milliseconds. */
  waitP50Ms: number;
  waitP95Ms: number;
  /** Hours that browsers waited idle, of all browsers together. */
  idleHours: number;
  /** Mean numbers of idle browsers and of those in use. */
  meanIdle: number;
  meanInUse: number;
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

type Step = 'arrive' | 'launched' | 'settled' | 'release' | 'ended' | 'refill' | 'evaluate';

/**
 * Runs requests through a pool whose size a policy decides, as the provisioner does, in simulated
 * time. All requests have the default options, each launch takes the same time and none fails.
 */
export function simulatePool({ requests, limits, policy, ...range }: Simulation): PoolFigures {
  const { countFrom = requests[0]?.at ?? 0, until = requests.at(-1)?.at ?? 0 } = range;
  const begin = Math.min(countFrom, requests[0]?.at ?? countFrom);
  const agenda = createAgenda();
  const figures = createFigures(countFrom, until);
  const pool = { idle: limits.minIdle, launching: 0, busy: 0, ending: 0 };
  const size = { target: limits.minIdle, limitedBy: null as PoolLimit };
  const queue: SimulatedRequest[] = [];
  const waiting: SimulatedRequest[] = [];
  let accepted: number[] = [];
  let bursts: PoolBursts = noBursts;
  let quiet = noQuietPeriod;
  let [now, isRefillPlanned, isEvaluationPlanned] = [begin, false, false];

  function factsNow(): PoolFacts {
    const [unserved, spare] = [waiting.length - pool.launching, pool.launching - waiting.length];
    return {
      ...{ isDraining: false, ...pool, waiting: waiting.length },
      ...{ unserved: Math.max(0, unserved), spare: Math.max(0, spare) },
      ...{ max: limits.max, launchesAtOnce: limits.launchesAtOnce },
      ...{ memoryFreeBytes: null, browserBytes: 0, ...size },
    };
  }
  function evaluate(): void {
    accepted = accepted.filter((at) => at > now - 60_000);
    const inputs = {
      ...{ ...factsNow(), ...limits, cpuPressure: null },
      arrivals10s: accepted.filter((at) => at > now - 10_000).length,
      arrivals60s: accepted.length,
      ...{ ...quietInputs(quiet, now), now, bursts },
    };
    const decision = decidePool(inputs, policy);
    quiet = quietAfter(quiet, inputs, decision, now);
    Object.assign(size, { target: decision.target, limitedBy: decision.limitedBy });
    for (let retired = 0; retired < decision.retire; retired += 1) end('idle');
  }
  function end(phase: 'idle' | 'busy'): void {
    pool[phase] -= 1;
    pool.ending += 1;
    agenda.add(now + END_MS, 'ended');
  }
  function serve({ at, durationMs }: SimulatedRequest): void {
    pool.busy += 1;
    figures.served(at, now - at);
    agenda.add(now + durationMs, 'release');
  }
  /** The longest waiting request gets the browser, or it becomes idle. */
  function offer(): void {
    const next = waiting.shift();
    pool.launching -= 1;
    if (next === undefined) pool.idle += 1;
    else serve(next);
  }
  function accept(): void {
    while (requestsWanted(factsNow()) > 0) {
      const request = queue.shift();
      if (request === undefined) return;
      accepted.push(now);
      bursts = noteRequest(bursts, now);
      if (!isEvaluationPlanned) agenda.add(now + EVALUATE_AFTER_ARRIVAL_MS, 'evaluate');
      isEvaluationPlanned = true;
      if (pool.idle === 0 || waiting.length > 0) waiting.push(request);
      else {
        pool.idle -= 1;
        serve(request);
      }
    }
  }
  function fill(isDue: boolean): void {
    if (launchesWanted(factsNow()) === 0) return;
    const isAtOnce = waiting.length > 0 || pool.busy + pool.ending === 0;
    if (!isAtOnce && !isDue) {
      if (!isRefillPlanned) agenda.add(now + REFILL_AFTER_MS, 'refill');
      isRefillPlanned = true;
      return;
    }
    for (let left = launchesWanted(factsNow()); left > 0; left = launchesWanted(factsNow())) {
      pool.launching += 1;
      agenda.add(now + limits.launchMs, 'launched');
    }
  }
  const steps: Record<Step, () => void> = {
    arrive: () => undefined,
    launched: () => (waiting.length > 0 ? offer() : agenda.add(now + SETTLE_MS, 'settled')),
    settled: offer,
    release: () => end('busy'),
    ended: () => (pool.ending -= 1),
    refill: () => (isRefillPlanned = false),
    evaluate() {
      isEvaluationPlanned = false;
      evaluate();
    },
  };
  let [nextRequest, nextTick] = [0, now];
  for (;;) {
    const request = requests[nextRequest];
    const at = Math.min(agenda.nextAt(), request?.at ?? Infinity, nextTick);
    // Requests that still wait are served after the end of the time that counts.
    const isDone = request === undefined && queue.length + waiting.length === 0;
    if (at > until && (isDone || at > until + DRAIN_MAX_MS)) break;
    figures.pass(now, at, pool);
    now = at;
    let step: Step = 'arrive';
    if (at === request?.at) {
      queue.push(request);
      nextRequest += 1;
    } else if (at === nextTick) {
      nextTick += EVALUATE_EVERY_MS;
      evaluate();
    } else step = agenda.next();
    steps[step]();
    accept();
    fill(step === 'refill');
  }
  figures.pass(now, until, pool);
  for (const { at } of [...waiting, ...queue]) figures.served(at, now - at);
  return figures.close();
}

/** What is to happen, by time; what was added first comes first. A binary heap. */
function createAgenda() {
  type Item = { at: number; order: number; step: Step };
  const items: Item[] = [];
  let added = 0;
  const isBefore = (one: number, other: number) => {
    const [a, b] = [items[one], items[other]];
    if (a === undefined || b === undefined) return a !== undefined;
    return a.at < b.at || (a.at === b.at && a.order < b.order);
  };
  function swap(one: number, other: number): void {
    const [a, b] = [items[one], items[other]];
    if (a !== undefined && b !== undefined) [items[one], items[other]] = [b, a];
  }
  return {
    nextAt: () => items[0]?.at ?? Infinity,
    add(at: number, step: Step): void {
      items.push({ at, order: added, step });
      added += 1;
      for (let index = items.length - 1; index > 0; ) {
        const parent = (index - 1) >> 1;
        if (!isBefore(index, parent)) return;
        swap(index, parent);
        index = parent;
      }
    },
    next(): Step {
      swap(0, items.length - 1);
      const first = items.pop();
      if (first === undefined) throw new RangeError('the agenda is empty');
      for (let index = 0; ; ) {
        const left = 2 * index + 1;
        const least = isBefore(left + 1, left) ? left + 1 : left;
        if (!isBefore(least, index)) return first.step;
        swap(index, least);
        index = least;
      }
    },
  };
}

function createFigures(from: number, until: number) {
  const waits: number[] = [];
  let [warm, idleMs, busyMs] = [0, 0, 0];
  return {
    served(at: number, waitMs: number): void {
      if (at < from || at > until) return;
      waits.push(waitMs);
      if (waitMs === 0) warm += 1;
    },
    pass(begin: number, end: number, { idle, busy }: { idle: number; busy: number }): void {
      const ms = Math.max(0, Math.min(end, until) - Math.max(begin, from));
      idleMs += idle * ms;
      busyMs += busy * ms;
    },
    close: () => figuresOf({ waits, warm, idleMs, busyMs, spanMs: until - from }),
  };
}

/** @param spanMs the time that the figures are of */
export function figuresOf(sums: {
  waits: readonly number[];
  warm: number;
  idleMs: number;
  busyMs: number;
  spanMs: number;
}): PoolFigures {
  const { waits, warm, idleMs, busyMs, spanMs } = sums;
  const sorted = waits.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
  const span = Math.max(1, spanMs);
  return {
    creates: waits.length,
    warm,
    waitP50Ms: at(0.5),
    waitP95Ms: at(0.95),
    idleHours: idleMs / 3_600_000,
    meanIdle: idleMs / span,
    meanInUse: busyMs / span,
  };
}
