import type { PoolDecision, PoolInputs, PoolLimit } from '#events/pool.ts';

/** Version of these rules; it is recorded with each decision, and grows with any change of them. */
export const POLICY = 2;

/** A target is lowered only after so long in which less was needed: arrivals come in waves. */
const CALM_MS = 60_000;
/** Browsers beyond the target are retired only when they have been too many for so long. */
const SURPLUS_MS = 60_000;
/**
 * Arrivals of a launch's time are about Poisson: their mean and two standard deviations are enough
 * in 19 of 20 such times.
 */
const DEVIATIONS = 2;
/** Left to the service and the machine; a browser is launched only where it fits beside this. */
const MEMORY_RESERVE_BYTES = 256 * 1024 ** 2;
/** What a server short of memory must have room for before it launches again. */
const MEMORY_FREE_AGAIN = 2;
/** Above the first, something waits for a core nearly always; below the second that is over. */
const CPU_HIGH = 0.9;
const CPU_LOW = 0.7;

/** What a pool is, as far as launching and taking are concerned. */
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
 * How many browsers are to wait, and what is to be launched or retired for it. Pure: the same
 * inputs always give the same decision, so that one that was recorded can be made again.
 * It raises the target at once and lowers it late; it retires idle browsers alone.
 */
export function decidePool(inputs: PoolInputs): PoolDecision {
  const need = needOf(inputs);
  const limitedBy = limitOf(inputs);
  const target = targetOf(inputs, need, limitedBy);
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

/** Decisions recorded before version 2 of these rules do not say which launch was for whom. */
function matchedByCount({ waiting, launching }: PoolInputs): { unserved: number; spare: number } {
  return { unserved: Math.max(0, waiting - launching), spare: Math.max(0, launching - waiting) };
}

/**
 * How many browsers to launch now: one for each waiting request that no launch under way is for,
 * and as many as are missing from the target. Idle browsers count for the target alone: a request
 * that an idle browser could serve would not wait.
 */
export function launchesWanted(facts: PoolFacts): number {
  const { idle, launching, spare, unserved, target, limitedBy, launchesAtOnce } = facts;
  // On a machine whose cores are taken, a second launch only slows the first.
  const atOnce = limitedBy === 'cpu' ? 1 : launchesAtOnce;
  const missing = limitedBy === 'memory' ? 0 : Math.max(0, target - idle - spare);
  return Math.max(0, Math.min(unserved + missing, roomOf(facts), atOnce - launching));
}

/**
 * How many more requests this server can take now: one for each idle browser, one for each that is
 * being launched or has room to be, less those already waiting. A request beyond that stays in the
 * queue, where any server may take it.
 */
export function requestsWanted(facts: PoolFacts): number {
  const { isDraining, idle, launching, waiting, limitedBy } = facts;
  if (isDraining) return 0;
  const room = limitedBy === 'memory' ? 0 : roomOf(facts);
  return Math.max(0, idle + launching + room - waiting);
}

/**
 * Whether an idle browser is to be evicted now, since the server is full and a request waits that
 * none of the idle ones can serve. Where memory is what is missing `decidePool` retires one, once a
 * second: what an end frees is measured a moment later.
 */
export function mustEvict({ idle, launching, busy, ending, max, unserved }: PoolFacts): boolean {
  return unserved > 0 && idle > 0 && ending === 0 && idle + launching + busy >= max;
}

/**
 * Whether a request waits that nothing can be launched for, and nothing under way could change it:
 * memory that was there when it was taken is used up, and no browser is idle. To be judged over
 * some seconds, since what an end frees is measured a moment later.
 */
export function isStuck({ idle, launching, ending, unserved, ...facts }: PoolFacts): boolean {
  const isQuiet = idle === 0 && launching === 0 && ending === 0;
  return unserved > 0 && isQuiet && roomOf({ ...facts, idle, launching, ending, unserved }) === 0;
}

/** Browsers that the arrivals of one launch's time ask for, within the bounds that are set. */
export function needOf(inputs: PoolInputs): number {
  const { arrivals10s, arrivals60s, launchMs, minIdle, maxIdle } = inputs;
  const perSecond = Math.max(arrivals10s / 10, arrivals60s / 60);
  const mean = (perSecond * launchMs) / 1000;
  const expected = Math.ceil(mean + DEVIATIONS * Math.sqrt(mean));
  return Math.max(minIdle, Math.min(expected, maxIdle));
}

function targetOf(inputs: PoolInputs, need: number, limitedBy: PoolLimit): number {
  const { isDraining, target, minIdle, calmMs, calmPeak } = inputs;
  if (isDraining) return 0;
  // Browsers that nobody waits for would take the cores from those that are in use.
  if (need > target) return limitedBy === 'cpu' ? Math.max(target, minIdle) : need;
  const isCalm = need < target && calmMs >= CALM_MS;
  return isCalm ? Math.min(target, Math.max(need, calmPeak)) : target;
}

/** What limits it goes on to limit it until it is well over. */
function limitOf(inputs: PoolInputs): PoolLimit {
  const { limitedBy, cpuPressure } = inputs;
  const fitting = memoryRoomOf(inputs);
  if (fitting < (limitedBy === 'memory' ? MEMORY_FREE_AGAIN : 1)) return 'memory';
  if (cpuPressure === null) return null;
  return cpuPressure >= (limitedBy === 'cpu' ? CPU_LOW : CPU_HIGH) ? 'cpu' : null;
}

/**
 * Browsers that may be launched beside those that are there. A server limited by memory uses what
 * room it has for requests that it has taken already: they wait here, and no other server has them.
 */
function roomOf(facts: PoolFacts): number {
  const { idle, launching, busy, ending, max } = facts;
  return Math.max(0, Math.min(max - idle - launching - busy - ending, memoryRoomOf(facts)));
}

/** Browsers that still fit; those being launched have not taken theirs yet. May be negative. */
function memoryRoomOf({
  memoryFreeBytes,
  browserBytes,
  launching,
}: Pick<PoolFacts, 'memoryFreeBytes' | 'browserBytes' | 'launching'>): number {
  if (memoryFreeBytes === null || browserBytes === 0) return Infinity;
  return Math.floor((memoryFreeBytes - MEMORY_RESERVE_BYTES) / browserBytes) - launching;
}

/** How many idle browsers to end now. */
function retiredOf(facts: PoolFacts, surplusMs: number): number {
  const { isDraining, idle, ending, unserved, target, memoryFreeBytes, browserBytes } = facts;
  if (isDraining) return idle;
  const surplus = surplusMs >= SURPLUS_MS ? Math.max(0, idle - target) : 0;
  // The reserve is being used up: a browser that nobody uses gives its memory to those in use.
  const isShort =
    memoryFreeBytes !== null && memoryFreeBytes < MEMORY_RESERVE_BYTES && browserBytes > 0;
  // An idle browser has the memory that the launch for a waiting request needs.
  const isInTheWay = unserved > 0 && ending === 0 && memoryRoomOf(facts) < 1;
  return Math.max(surplus, (isShort || isInTheWay) && idle > 0 ? 1 : 0);
}
