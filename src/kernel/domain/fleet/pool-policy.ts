import type { PoolDecision, PoolInputs, PoolLimit } from '#events/pool.ts';
import { expectBursts, noBursts, type Expectation } from './bursts.ts';

/**
 * Version of these rules. It is recorded with each decision and must be raised with every change of
 * them.
 */
export const POLICY = 3;
/** The versions whose decisions can be made again; version 2 knows no bursts. */
export const policies: readonly number[] = [2, POLICY];

/**
 * The target is lowered only after demand has been below it for this long: arrivals come in waves.
 */
const CALM_MS = 60_000;
/** Browsers beyond the target are retired only after the surplus has lasted this long. */
const SURPLUS_MS = 60_000;
/**
 * The number of arrivals during one launch is roughly Poisson distributed: mean plus two standard
 * deviations covers 19 of 20 launches.
 */
const DEVIATIONS = 2;
/**
 * Memory left to the service and the machine; a browser is launched only if it fits next to this.
 */
const MEMORY_RESERVE_BYTES = 256 * 1024 ** 2;
/**
 * Number of browsers for which a server short of memory must have room before it launches again.
 */
const MEMORY_FREE_AGAIN = 2;
/**
 * Above the first value some process nearly always waits for a core; below the second that is over.
 */
const CPU_HIGH = 0.9;
const CPU_LOW = 0.7;

/** The state of a pool, as far as launching and accepting requests depend on it. */
export type PoolFacts = Required<
  Pick<
    PoolInputs,
    | 'isDraining'
    | 'idle'
    | 'launching'
    | 'spare'
    | 'busy'
    | 'ending'
    | 'waiting'
    | 'unserved'
    | 'max'
    | 'launchesAtOnce'
    | 'memoryFreeBytes'
    | 'browserBytes'
    | 'target'
    | 'limitedBy'
  >
>;

/**
 * Decides how many browsers to keep idle, and how many to launch or retire for that. Pure: the same
 * inputs always give the same decision, so that a recorded decision can be repeated. It raises the
 * target at once and lowers it late; it retires idle browsers only.
 */
export function decidePool(inputs: PoolInputs, policy = POLICY): PoolDecision {
  const bursts = expectationOf(inputs, policy);
  const need = needOf(inputs, bursts);
  const limitedBy = limitOf(inputs);
  const target = targetOf(inputs, need, limitedBy, bursts);
  const facts = { ...matchedByCount(inputs), ...inputs, target, limitedBy };
  return {
    need,
    target,
    limitedBy,
    room: roomOf(facts),
    launch: launchesWanted(facts),
    retire: retiredOf(facts, inputs.surplusMs),
  };
}

/**
 * Decisions recorded before version 2 of these rules do not tell which launch was for which
 * request.
 */
function matchedByCount({ waiting, launching }: PoolInputs): { unserved: number; spare: number } {
  return { unserved: Math.max(0, waiting - launching), spare: Math.max(0, launching - waiting) };
}

/**
 * Number of browsers to launch now: one for each waiting request without a launch in progress, and
 * as many as the target lacks. Idle browsers count for the target only: a request that an idle
 * browser could serve would not wait.
 */
export function launchesWanted(facts: PoolFacts): number {
  const { idle, launching, spare, unserved, target, limitedBy, launchesAtOnce } = facts;
  // If all cores are busy, a second launch only slows the first.
  const atOnce = limitedBy === 'cpu' ? 1 : launchesAtOnce;
  const missing = limitedBy === 'memory' ? 0 : Math.max(0, target - idle - spare);
  return Math.max(0, Math.min(unserved + missing, roomOf(facts), atOnce - launching));
}

/**
 * Number of further requests that this server can accept now: one for each idle browser, and one
 * for each browser that is being launched or has room to be, less the waiting requests. Any further
 * request stays in the queue, where every server may take it.
 */
export function requestsWanted(facts: PoolFacts): number {
  const { isDraining, idle, launching, waiting, limitedBy } = facts;
  if (isDraining) return 0;
  const room = limitedBy === 'memory' ? 0 : roomOf(facts);
  return Math.max(0, idle + launching + room - waiting);
}

/**
 * Whether to evict an idle browser now, because the server is full and no idle browser can serve a
 * waiting request. If memory is the limit, `decidePool` retires one browser a second instead: freed
 * memory is measured a moment later.
 */
export function mustEvict({ idle, launching, busy, ending, max, unserved }: PoolFacts): boolean {
  return unserved > 0 && idle > 0 && ending === 0 && idle + launching + busy >= max;
}

/**
 * Whether a request waits for which no browser can be launched, and nothing in progress could
 * change that: the memory available when the request was accepted is used up, and no browser is
 * idle. Judge it over some seconds, because freed memory is measured a moment later.
 */
export function isStuck({ idle, launching, ending, unserved, ...facts }: PoolFacts): boolean {
  const isQuiet = idle === 0 && launching === 0 && ending === 0;
  return unserved > 0 && isQuiet && roomOf({ ...facts, idle, launching, ending, unserved }) === 0;
}

function expectationOf(inputs: PoolInputs, policy: number): Expectation {
  const { bursts, now } = inputs;
  const isKnown = policy > 2 && bursts !== undefined && now !== undefined;
  return isKnown ? expectBursts(bursts, now, inputs) : expectBursts(noBursts, 0, inputs);
}

/**
 * Number of browsers for the arrivals during one launch or for the burst that is due, whichever is
 * more, within the configured bounds. A burst that is not due again yet says nothing about the next
 * arrivals, and does not count among them.
 */
function needOf(inputs: PoolInputs, { due, resting, came }: Expectation): number {
  const { arrivals10s, arrivals60s, launchMs, minIdle, maxIdle } = inputs;
  const steady = (arrivals: number, ms: number) =>
    resting > 0 ? Math.max(0, arrivals - came(ms)) : arrivals;
  const perSecond = Math.max(steady(arrivals10s, 10_000) / 10, steady(arrivals60s, 60_000) / 60);
  const mean = (perSecond * launchMs) / 1000;
  const expected = Math.ceil(mean + DEVIATIONS * Math.sqrt(mean));
  return Math.max(minIdle, Math.min(Math.max(expected, due), maxIdle));
}

function targetOf(
  inputs: PoolInputs,
  need: number,
  limitedBy: PoolLimit,
  { due, resting }: Expectation,
): number {
  const { isDraining, target, minIdle, maxIdle, calmMs, calmPeak, busy } = inputs;
  if (isDraining) return 0;
  if (need > target) {
    if (limitedBy !== 'cpu') return need;
    // Browsers for future requests would take the cores from those in use. Without any, those for
    // a burst are launched before it, one at a time, rather than all while it waits.
    return Math.max(target, minIdle, busy === 0 ? Math.min(due, maxIdle) : 0);
  }
  // The burst has come that the target was for: its browsers are not replaced yet.
  const awaited = Math.min(resting, maxIdle);
  if (target > awaited / 2 && target <= awaited) return need;
  const isCalm = need < target && calmMs >= CALM_MS;
  return isCalm ? Math.min(target, Math.max(need, calmPeak)) : target;
}

/**
 * The resource that limits the pool. A limit stays until the resource is well below its threshold.
 */
function limitOf(inputs: PoolInputs): PoolLimit {
  const { limitedBy, cpuPressure } = inputs;
  const fitting = memoryRoomOf(inputs);
  if (fitting < (limitedBy === 'memory' ? MEMORY_FREE_AGAIN : 1)) return 'memory';
  if (cpuPressure === null) return null;
  return cpuPressure >= (limitedBy === 'cpu' ? CPU_LOW : CPU_HIGH) ? 'cpu' : null;
}

/**
 * Number of browsers that may be launched in addition to the existing ones. A server limited by
 * memory uses its room for requests that it has accepted: no other server can serve these.
 */
function roomOf(facts: PoolFacts): number {
  const { idle, launching, busy, ending, max } = facts;
  return Math.max(0, Math.min(max - idle - launching - busy - ending, memoryRoomOf(facts)));
}

/**
 * Number of browsers that still fit; those being launched have not allocated theirs yet. May be
 * negative.
 */
export function memoryRoomOf({
  memoryFreeBytes,
  browserBytes,
  launching,
}: Pick<PoolFacts, 'memoryFreeBytes' | 'browserBytes' | 'launching'>): number {
  if (memoryFreeBytes === null || browserBytes === 0) return Infinity;
  return Math.floor((memoryFreeBytes - MEMORY_RESERVE_BYTES) / browserBytes) - launching;
}

/** Number of idle browsers to end now. */
function retiredOf(facts: PoolFacts, surplusMs: number): number {
  const { isDraining, idle, ending, unserved, target, memoryFreeBytes, browserBytes } = facts;
  if (isDraining) return idle;
  const surplus = surplusMs >= SURPLUS_MS ? Math.max(0, idle - target) : 0;
  // The reserve is being used up: ending an idle browser gives its memory to the busy ones.
  const isShort =
    memoryFreeBytes !== null && memoryFreeBytes < MEMORY_RESERVE_BYTES && browserBytes > 0;
  // An idle browser holds the memory that the launch for a waiting request needs.
  const isInTheWay = unserved > 0 && ending === 0 && memoryRoomOf(facts) < 1;
  return Math.max(surplus, (isShort || isInTheWay) && idle > 0 ? 1 : 0);
}
