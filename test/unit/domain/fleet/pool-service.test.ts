import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { BrowserOptions } from '#events/session.ts';
import {
  decidePool,
  launchesWanted,
  mustEvict,
  type PoolFacts,
} from '#src/kernel/domain/fleet/pool-policy.ts';
import { DEFAULTS, isSame, matchLaunches } from '#src/roles/provisioner/pool/options.ts';
import { runs } from '#test/support/seeds/seeds.ts';

/** A pool that follows the rules, second by second: each waiting request gets its browser. */

const GIB = 1024 ** 3;
const BROWSER_BYTES = GIB / 4;
const LAUNCH_SECONDS = 3;
const END_SECONDS = 1;

type Life = {
  max: number;
  minIdle: number;
  launchesAtOnce: number;
  /** Number of browsers that fit into the machine's memory next to its reserve. */
  memoryHolds: number;
  cpuPressure: number;
  target: number;
  limitedBy: PoolFacts['limitedBy'];
  idle: number;
  busy: number;
  launching: { options: BrowserOptions; left: number }[];
  waiting: { options: BrowserOptions }[];
};

const optionSets: BrowserOptions[] = [
  DEFAULTS,
  { ...DEFAULTS, locale: 'fr-FR' },
  { ...DEFAULTS, timezone: 'Europe/Rome' },
  { ...DEFAULTS, headless: true },
  { ...DEFAULTS, viewport: { width: 800, height: 600 } },
];
const anyOptions = fc.constantFrom(...optionSets);
const count = (max: number) => fc.integer({ min: 0, max });

const lives: fc.Arbitrary<Life> = fc
  .record({
    max: fc.integer({ min: 1, max: 20 }),
    minIdle: count(5),
    launchesAtOnce: fc.integer({ min: 1, max: 8 }),
    memoryHolds: fc.integer({ min: 1, max: 20 }),
    cpuPressure: fc.double({ min: 0, max: 1, noNaN: true }),
    target: count(12),
    limitedBy: fc.constantFrom('memory', 'cpu', null),
    idle: count(12),
    busy: count(12),
    launching: fc.array(
      fc.record({ options: anyOptions, left: fc.integer({ min: 1, max: LAUNCH_SECONDS }) }),
      { maxLength: 6 },
    ),
    waiting: fc.array(fc.record({ options: anyOptions }), { minLength: 1, maxLength: 12 }),
  })
  .map((life) => {
    // An idle browser serves a request with the same options at once.
    const isServed = ({ options }: { options: BrowserOptions }) =>
      life.idle > 0 && isSame(options, DEFAULTS);
    return { ...life, waiting: life.waiting.filter((request) => !isServed(request)) };
  })
  .filter(({ max, memoryHolds, idle, busy, launching, waiting }) => {
    const holds = Math.min(max, memoryHolds);
    return idle + busy + launching.length <= holds && busy + waiting.length <= holds;
  });

it('a waiting request with room is served within a bound, in every state of the pool', () => {
  const kinds = { evicted: 0, byMemory: 0, cpu: 0 };
  fc.assert(
    fc.property(lives, (life) => {
      if (life.waiting.length === 0) return;
      const { servedWithin, evicted, byMemory, cpu } = live(structuredClone(life));
      kinds.evicted += evicted;
      kinds.byMemory += byMemory;
      kinds.cpu += cpu;
      expect(servedWithin).toBeLessThanOrEqual(boundOf(life));
    }),
    { numRuns: runs(3_000) },
  );
  // All states that the rules distinguish have occurred.
  for (const [kind, met] of Object.entries(kinds)) expect(met, kind).toBeGreaterThan(10);
});

/**
 * In seconds. A request's own launch may wait for all launches in progress, and for the launch and
 * the end of one browser for each earlier request; a server launches at least one browser at a
 * time.
 */
function boundOf({ waiting, launching }: Life): number {
  const each = LAUNCH_SECONDS + END_SECONDS + 2;
  return (waiting.length + launching.length + 1) * each;
}

function live(life: Life) {
  let [ending, surplusMs] = [[] as number[], 0];
  const met = { evicted: 0, byMemory: 0, cpu: 0 };
  const inputsOf = () => {
    const { unserved, spare } = matchLaunches(life.waiting, life.launching);
    const there = life.idle + life.busy + ending.length;
    return {
      ...{ isDraining: false, idle: life.idle, launching: life.launching.length, spare },
      ...{ busy: life.busy, ending: ending.length },
      ...{ waiting: life.waiting.length, unserved: unserved.length },
      ...{ arrivals10s: 0, arrivals60s: 0, launchMs: LAUNCH_SECONDS * 1_000 },
      ...{ minIdle: life.minIdle, maxIdle: 12, max: life.max },
      launchesAtOnce: life.launchesAtOnce,
      memoryFreeBytes: GIB / 4 + (life.memoryHolds - there) * BROWSER_BYTES,
      ...{ browserBytes: BROWSER_BYTES, cpuPressure: life.cpuPressure },
      ...{ target: life.target, limitedBy: life.limitedBy },
      ...{ calmMs: 0, calmPeak: 0, surplusMs },
    };
  };
  const end = () => {
    life.idle -= 1;
    ending.push(END_SECONDS);
  };
  const ready = (options: BrowserOptions) => {
    const at = life.waiting.findIndex((request) => isSame(request.options, options));
    if (at !== -1) {
      life.waiting.splice(at, 1);
      life.busy += 1;
    } else if (isSame(options, DEFAULTS)) life.idle += 1;
    else ending.push(END_SECONDS);
  };
  const longest = 2 * boundOf(life);
  let second = 0;
  for (; life.waiting.length > 0 && second < longest; second += 1) {
    ending = ending.map((left) => left - 1).filter((left) => left > 0);
    for (const launch of life.launching) launch.left -= 1;
    const done = life.launching.filter(({ left }) => left <= 0);
    life.launching = life.launching.filter(({ left }) => left > 0);
    for (const { options } of done) ready(options);
    const { target, limitedBy, retire } = decidePool(inputsOf());
    surplusMs = life.idle > target ? surplusMs + 1_000 : 0;
    Object.assign(life, { target, limitedBy });
    if (limitedBy === 'cpu') met.cpu += 1;
    for (let retired = 0; retired < retire; retired += 1) end();
    met.byMemory += retire;
    if (mustEvict(inputsOf())) {
      end();
      met.evicted += 1;
    }
    while (launchesWanted(inputsOf()) > 0) {
      const { waiting, launching } = life;
      const [next] = matchLaunches(waiting, launching).unserved;
      launching.push({ options: next?.options ?? DEFAULTS, left: LAUNCH_SECONDS });
    }
  }
  return { servedWithin: second, ...met };
}
