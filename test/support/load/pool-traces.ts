import { mulberry32 } from '#test/support/random.ts';
import type { SimulatedLimits, SimulatedRequest } from '#src/kernel/domain/fleet/simulate-pool.ts';

/** Requests of made-up clients, the same at each run. */
export type PoolTrace = {
  name: string;
  requests: readonly SimulatedRequest[];
  limits: SimulatedLimits;
  /** When the figures begin: at the third burst. */
  countFrom: number;
  /** Least share of creates served warm, and most idle browsers for each in use; null: no goal. */
  goals: { warm: number; idle: number } | null;
};

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** A Monday, midnight. */
const BEGIN = Date.UTC(2026, 0, 5);
const GOALS = { warm: 0.95, idle: 1.5 };

/** Two launches at once, as on two cores; of the time that a headful Chromium takes there. */
const LARGE = { minIdle: 1, maxIdle: 200, max: 200, launchesAtOnce: 2, launchMs: 700 };
/** What `npm start` runs on two cores. */
const DEFAULT = { ...LARGE, maxIdle: 4, max: 4 };

type Random = () => number;

const between = (random: Random, [from, to]: Range) => from + random() * (to - from);
/** From and to. */
type Range = readonly [number, number];

type Bursts = { size: Range; gapMs: Range; lastsMs: Range; spreadMs?: number };

/** Bursts from one time to another; the requests of one come within `spreadMs`. */
function burstsOf(random: Random, { size, gapMs, lastsMs, spreadMs = 300 }: Bursts, when: Range) {
  const bursts: SimulatedRequest[][] = [];
  for (let at = when[0]; at < when[1]; at += between(random, gapMs)) {
    const begin = at;
    const count = Math.floor(between(random, [size[0], size[1] + 1]));
    bursts.push(
      Array.from({ length: count }, () => ({
        at: Math.round(begin + random() * spreadMs),
        durationMs: Math.round(between(random, lastsMs)),
      })),
    );
  }
  return bursts;
}

/** Requests that come one by one, `perMinute` of the time on average. */
function steadyOf(
  random: Random,
  perMinute: (at: number) => number,
  lastsMs: Range,
  [from, to]: Range,
) {
  const requests: SimulatedRequest[] = [];
  for (let at = from; ;) {
    at += (-Math.log(1 - random()) * MINUTE) / perMinute(at);
    if (at >= to) return requests;
    requests.push({ at: Math.round(at), durationMs: Math.round(between(random, lastsMs)) });
  }
}

function ordered(requests: readonly SimulatedRequest[]): SimulatedRequest[] {
  return requests.toSorted((one, other) => one.at - other.at);
}

const LASTS: Range = [2 * MINUTE, 4 * MINUTE];
const EVERY_FIVE: Range = [4 * MINUTE, 6 * MINUTE];
const TWO_HOURS: Range = [BEGIN, BEGIN + 2 * HOUR];

function burstTrace(
  name: string,
  bursts: Partial<Bursts>,
  { limits = LARGE, goals = GOALS }: Partial<Pick<PoolTrace, 'limits' | 'goals'>> = {},
): PoolTrace {
  const all = { size: [4, 4] as const, gapMs: EVERY_FIVE, lastsMs: LASTS, ...bursts };
  const come = burstsOf(mulberry32(name.length), all, TWO_HOURS);
  const countFrom = Math.min(...(come[2] ?? []).map(({ at }) => at));
  return { name, requests: ordered(come.flat()), limits, countFrom, goals };
}

function steady(): PoolTrace {
  const requests = steadyOf(mulberry32(1), () => 30, LASTS, TWO_HOURS);
  const name = 'steady, 30 a minute';
  return { name, requests, limits: LARGE, countFrom: BEGIN + 10 * MINUTE, goals: GOALS };
}

/** Bursts of 10 between other clients' requests. */
function mixed(): PoolTrace {
  const random = mulberry32(2);
  const bursts = burstsOf(random, { size: [10, 10], gapMs: EVERY_FIVE, lastsMs: LASTS }, TWO_HOURS);
  const others = steadyOf(random, () => 12, LASTS, TWO_HOURS);
  const countFrom = Math.min(...(bursts[2] ?? []).map(({ at }) => at));
  const requests = ordered([...bursts.flat(), ...others]);
  return { name: '10 every 5 min + 12 a minute', requests, limits: LARGE, countFrom, goals: GOALS };
}

/** Three days: requests by the sun, and bursts of 10 every 10 minutes from 9 to 17. */
function days(): PoolTrace {
  const random = mulberry32(3);
  const all: Range = [BEGIN, BEGIN + 72 * HOUR];
  const perMinute = (at: number) => 2 - 1.8 * Math.cos((2 * Math.PI * (at - BEGIN)) / (24 * HOUR));
  const office = {
    size: [10, 10],
    gapMs: [9 * MINUTE, 11 * MINUTE],
    lastsMs: [3 * MINUTE, 6 * MINUTE],
  } as const;
  const bursts = [0, 1, 2].flatMap((day) => {
    const from = BEGIN + (24 * day + 9) * HOUR + random() * 5 * MINUTE;
    return burstsOf(random, office, [from, from + 8 * HOUR]);
  });
  const countFrom = Math.min(...(bursts[2] ?? []).map(({ at }) => at));
  const requests = ordered([...bursts.flat(), ...steadyOf(random, perMinute, LASTS, all)]);
  return { name: "three days' curves", requests, limits: LARGE, countFrom, goals: GOALS };
}

/** The traces of the bench; their goals are held by a test. */
export function poolTraces(): PoolTrace[] {
  const every = (minutes: number): Range => [0.8 * minutes * MINUTE, 1.2 * minutes * MINUTE];
  return [
    steady(),
    burstTrace('4 every 5 min', {}),
    burstTrace('10 every 5 min', { size: [10, 10] }),
    burstTrace('50 every 5 min', { size: [50, 50] }),
    burstTrace('4 every 5 min, POOL_MAX 4', {}, { limits: DEFAULT }),
    burstTrace('4 every 5 min, 2 min each', { lastsMs: [110 * SECOND, 130 * SECOND] }),
    burstTrace('10 every 2 min, 45 to 90 s each', {
      ...{ size: [10, 10], gapMs: every(2), lastsMs: [45 * SECOND, 90 * SECOND] },
    }),
    burstTrace('8 to 12 every 10 min, 4 to 8 min each', {
      ...{ size: [8, 12], gapMs: every(10), lastsMs: [4 * MINUTE, 8 * MINUTE] },
    }),
    burstTrace('10 every 3 min, 5 min each', {
      ...{ size: [10, 10], gapMs: every(3), lastsMs: [5 * MINUTE, 5 * MINUTE] },
    }),
    burstTrace('50 within 5 s every 5 min', { size: [50, 50], spreadMs: 5 * SECOND }),
    mixed(),
    days(),
    burstTrace(
      '10 at random, 5 min apart',
      { size: [10, 10], gapMs: [0, 10 * MINUTE] },
      { goals: null },
    ),
    burstTrace(
      '10 every 5 min, 30 s each',
      {
        ...{ size: [10, 10], lastsMs: [30 * SECOND, 30 * SECOND] },
      },
      { goals: null },
    ),
  ];
}
