import type { PoolBurst, PoolBursts } from '#events/pool.ts';

/**
 * Parallel workers request four or fifty browsers at once, again and again. This remembers such
 * bursts, and says which of them are due.
 */

/**
 * Requests of one burst follow each other within about one launch's time: a launch begun for one of
 * them comes too late for the next.
 */
const PAUSE_MS = 1_000;
/** Requests that go on for longer are a steady load, which the mean of the last minute covers. */
const BURST_MS = 10_000;
/** Two bursts further apart belong to no rhythm; browsers would wait long for one use. */
const GAP_MAX_MS = 30 * 60_000;
/** Bursts of at least this share of a size count as bursts of that size. */
const LIKE = 0.75;
/**
 * Browsers wait for a burst from this share of the shortest gap on. One known gap may be the
 * longest that comes: 0.6 covers gaps that differ by a quarter from their mean (0.75 ÷ 1.25). The
 * more gaps are known, the nearer the shortest is to the least; 0.8 leaves room for a rhythm that
 * changes.
 */
const REST_MAX = 0.8;
const restAfter = (gaps: number) => Math.min(REST_MAX, 1 - REST_MAX / (gaps + 1));
/** A shorter rest is not taken: each one costs two decisions, and saves little. */
const REST_MIN_MS = 60_000;
/** Browsers wait for a burst until this many times the longest gap has passed. */
const PATIENCE = 2;
/** Launches at once take longer than one alone, and the pool is evaluated once a second. */
const LEAD = 1.25;
const LEAD_MIN_MS = 1_000;
/** The first burst of a day is expected this long before and after those of the days before. */
const DAY_TOLERANCE_MS = 10 * 60_000;
const DAY_MS = 24 * 60 * 60_000;
/** Bursts are forgotten after this. */
const MEMORY_MS = 7 * DAY_MS;
/** Remembered bursts: of about one size (2 to 3, 4 to 7, 8 to 15, …), in all, and starts. */
const OF_A_SIZE_MAX = 8;
const RECENT_MAX = 48;
const STARTS_MAX = 16;

export const noBursts: PoolBursts = { underWay: null, recent: [], starts: [] };

/**
 * The bursts after one more accepted request.
 * @param at milliseconds since the epoch
 */
export function noteRequest(bursts: PoolBursts, at: number): PoolBursts {
  const { underWay } = bursts;
  if (underWay !== null && isFollowed(underWay, at))
    return {
      ...bursts,
      underWay: { ...underWay, lastAt: Math.max(underWay.lastAt, at), size: underWay.size + 1 },
    };
  return { ...withEnded(bursts), underWay: { at, lastAt: at, size: 1 } };
}

function isFollowed({ lastAt }: NonNullable<PoolBursts['underWay']>, at: number): boolean {
  return Math.abs(at - lastAt) <= PAUSE_MS;
}

/** The bursts with the one under way among them. */
function withEnded({ underWay, recent, starts }: PoolBursts): PoolBursts {
  if (underWay === null || !isBurst(underWay)) return { underWay: null, recent, starts };
  const { at, size } = underWay;
  const isStart = !recent.some((one) => isLike(one, size) && at - one.at <= GAP_MAX_MS);
  const isFresh = (one: PoolBurst) => at - one.at <= MEMORY_MS;
  const ended = { at, size };
  const ofThisSize = recent.filter((one) => sizeClass(one.size) === sizeClass(size));
  const oldest = ofThisSize.length >= OF_A_SIZE_MAX ? ofThisSize[0] : undefined;
  return {
    underWay: null,
    recent: [...recent.filter((one) => one !== oldest && isFresh(one)), ended].slice(-RECENT_MAX),
    starts: isStart ? [...starts.filter(isFresh), ended].slice(-STARTS_MAX) : starts,
  };
}

function isBurst({ at, lastAt, size }: NonNullable<PoolBursts['underWay']>): boolean {
  return size > 1 && lastAt - at <= BURST_MS;
}

function sizeClass(size: number): number {
  return Math.floor(Math.log2(size));
}

function isLike(burst: PoolBurst, size: number): boolean {
  return burst.size >= LIKE * size;
}

/** What the remembered bursts say at one moment. */
export type Expectation = {
  /** Size of the largest burst that is due; 0: none is. */
  due: number;
  /** Size of the largest burst that has come and is not due again yet; 0: none. */
  resting: number;
  /** Number of requests in bursts that began in the last `ms`. */
  came: (ms: number) => number;
};

/** How long the launches before a burst take. */
export type LaunchPace = { launchMs: number; launchesAtOnce: number; maxIdle: number };

/** @param now milliseconds since the epoch */
export function expectBursts(bursts: PoolBursts, now: number, pace: LaunchPace): Expectation {
  const known = withEnded(bursts).recent;
  const sizes = [...new Set(bursts.recent.map(({ size }) => size))];
  const rhythms = sizes.map((size) => rhythmOf(known, size, now, pace));
  const largest = (wanted: Phase) =>
    Math.max(0, ...rhythms.flatMap(({ size, phase }) => (phase === wanted ? [size] : [])));
  return {
    due: Math.max(largest('due'), dueByDay(bursts, known, now)),
    resting: largest('resting'),
    came: (ms) => known.reduce((sum, { at, size }) => (now - at < ms ? sum + size : sum), 0),
  };
}

type Phase = 'unknown' | 'resting' | 'due' | 'over';

/** Whether a burst of this size is due, by the gaps between those that came. */
function rhythmOf(
  known: readonly PoolBurst[],
  size: number,
  now: number,
  pace: LaunchPace,
): { size: number; phase: Phase } {
  const like = known.filter((burst) => isLike(burst, size));
  const gaps = like
    .map(({ at }, index) => at - (like[index - 1]?.at ?? -Infinity))
    .filter((gap) => gap > 0 && gap <= GAP_MAX_MS);
  const last = like.at(-1);
  const since = last === undefined ? -1 : now - last.at;
  // A clock that was set back says nothing.
  if (gaps.length === 0 || since < 0) return { size, phase: 'unknown' };
  const rest = restAfter(gaps.length) * Math.min(...gaps) - leadOf(size, pace);
  const isResting = rest >= REST_MIN_MS && since < rest;
  const isOver = since > PATIENCE * Math.max(...gaps);
  if (isResting) return { size, phase: 'resting' };
  return { size, phase: isOver ? 'over' : 'due' };
}

function leadOf(size: number, { launchMs, launchesAtOnce, maxIdle }: LaunchPace): number {
  const rounds = Math.ceil(Math.min(size, maxIdle) / launchesAtOnce);
  return LEAD_MIN_MS + LEAD * rounds * launchMs;
}

/**
 * Size of the burst that a rhythm began with at about this time of day on two of the last days; 0
 * if there is none, or if it has come.
 */
function dueByDay({ starts }: PoolBursts, known: readonly PoolBurst[], now: number): number {
  const byDay = new Map<number, number>();
  for (const { at, size } of starts) {
    const days = Math.round((now - at) / DAY_MS);
    const isAtThisTime = Math.abs(now - at - days * DAY_MS) <= DAY_TOLERANCE_MS;
    if (days > 0 && isAtThisTime && now - at <= MEMORY_MS)
      byDay.set(days, Math.max(byDay.get(days) ?? 0, size));
  }
  const [, size = 0] = [...byDay.values()].toSorted((one, other) => other - one);
  const hasCome = known.some((one) => isLike(one, size) && now - one.at <= GAP_MAX_MS);
  return hasCome ? 0 : size;
}
