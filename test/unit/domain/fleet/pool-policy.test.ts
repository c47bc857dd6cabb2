import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { PoolDecision, PoolInputs } from '#events/pool.ts';
import { noBursts } from '#src/kernel/domain/fleet/bursts.ts';
import {
  decidePool,
  isStuck,
  mustEvict,
  policies,
  requestsWanted,
} from '#src/kernel/domain/fleet/pool-policy.ts';
import { runs } from '#test/support/seeds/seeds.ts';

const GIB = 1024 ** 3;
const BROWSER = GIB / 4;
const DAY = 24 * 3_600_000;
const NOW = Date.UTC(2026, 0, 5, 10);

/** A server without arrivals on a machine with plenty of memory and CPU. */
const quiet: Required<PoolInputs> = {
  ...{ isDraining: false, idle: 1, launching: 0, spare: 0, busy: 0, ending: 0 },
  ...{ waiting: 0, unserved: 0 },
  ...{ arrivals10s: 0, arrivals60s: 0, launchMs: 500, minIdle: 1, maxIdle: 8, max: 10 },
  ...{ launchesAtOnce: 2, memoryFreeBytes: 16 * GIB, browserBytes: BROWSER, cpuPressure: 0.1 },
  ...{ target: 1, limitedBy: null, calmMs: 0, calmPeak: 0, surplusMs: 0 },
  ...{ now: NOW, bursts: noBursts },
};
function decide(other: Partial<PoolInputs>): PoolDecision {
  return decidePool({ ...quiet, ...other });
}

describe('the target', () => {
  it('stays the same without arrivals', () => {
    expect(decide({})).toMatchObject({ need: 1, target: 1, launch: 0, retire: 0 });
  });

  it('covers the arrivals during a launch, and their deviation', () => {
    expect(decide({ arrivals10s: 20 })).toMatchObject({ need: 3, target: 3, launch: 2 });
    expect(decide({ arrivals10s: 20, launchMs: 2_000 })).toMatchObject({ need: 8, target: 8 });
    // The mean of a minute counts if the last seconds had few arrivals.
    expect(decide({ arrivals60s: 120 })).toMatchObject({ target: 3 });
  });

  it('is lowered late: after a minute of lower demand, to that minute’s peak', () => {
    const high = { target: 5, idle: 5 };
    expect(decide({ ...high, calmMs: 59_999, calmPeak: 2 }).target).toBe(5);
    expect(decide({ ...high, calmMs: 60_000, calmPeak: 2 }).target).toBe(2);
    expect(decide({ ...high, calmMs: 60_000, calmPeak: 2, arrivals10s: 20 }).target).toBe(3);
  });

  it('is zero on a draining server, and idle browsers are retired', () => {
    const draining = { isDraining: true, idle: 3, busy: 2, target: 3, arrivals10s: 50 };
    expect(decide(draining)).toMatchObject({ target: 0, launch: 0, retire: 3 });
  });
});

describe('a surplus', () => {
  it('is retired when it has lasted a minute', () => {
    expect(decide({ idle: 4, target: 2, surplusMs: 59_999 }).retire).toBe(0);
    expect(decide({ idle: 4, target: 2, surplusMs: 60_000 }).retire).toBe(2);
  });

  it('is not kept for a request that it cannot serve', () => {
    const request = { waiting: 1, unserved: 1 };
    expect(decide({ idle: 4, target: 2, surplusMs: 60_000, ...request }).retire).toBe(2);
  });
});

describe('a request that no idle browser can serve', () => {
  const request = { waiting: 1, unserved: 1 };
  it('gets a launch, however many browsers are idle', () => {
    expect(decide({ idle: 8, target: 1, max: 10, ...request }).launch).toBe(1);
    expect(decide({ idle: 1, target: 1, ...request }).launch).toBe(1);
  });

  it('gets one launch, and the pool gets its own', () => {
    expect(decide({ idle: 8, target: 1, waiting: 1, launching: 1 }).launch).toBe(0);
    expect(decide({ idle: 0, target: 1, waiting: 1, launching: 1 }).launch).toBe(1);
    expect(decide({ idle: 0, target: 1, launching: 1, spare: 1 }).launch).toBe(0);
  });
});

describe('a machine short of memory', () => {
  const five = { idle: 0, waiting: 5, unserved: 5 };
  const one = { memoryFreeBytes: BROWSER + GIB / 4 };
  it('launches what fits next to its reserve, launches in progress included', () => {
    expect(decide({ ...five, memoryFreeBytes: 3 * BROWSER + GIB / 4 })).toMatchObject({
      room: 3,
      launch: 2,
    });
    expect(decide({ ...five, ...one })).toMatchObject({ room: 1, launch: 1 });
    expect(decide({ ...five, launching: 1, ...one })).toMatchObject({
      limitedBy: 'memory',
      room: 0,
      launch: 0,
    });
  });

  it('launches for the pool and accepts requests again only when there is room for two', () => {
    const none = { ...quiet, idle: 0, limitedBy: 'memory' as const, ...one };
    expect(decidePool(none)).toMatchObject({ limitedBy: 'memory', launch: 0 });
    expect(requestsWanted(none)).toBe(0);
    const two = { memoryFreeBytes: 2 * BROWSER + GIB / 4 };
    expect(decidePool({ ...none, ...two })).toMatchObject({ limitedBy: null, room: 2, launch: 1 });
  });

  it('launches for an accepted request as soon as there is room for one', () => {
    expect(decide({ ...five, limitedBy: 'memory', ...one })).toMatchObject({
      limitedBy: 'memory',
      launch: 1,
    });
  });

  it('ends an idle browser for a request that it cannot serve', () => {
    const full = { idle: 2, target: 2, waiting: 1, unserved: 1, memoryFreeBytes: GIB / 4 };
    expect(decide(full)).toMatchObject({ limitedBy: 'memory', launch: 0, retire: 1 });
    // The memory of the browser that is ending is yet to be freed.
    expect(decide({ ...full, ending: 1 })).toMatchObject({ launch: 0, retire: 0 });
  });

  it('retires idle browsers, one at a time, before busy ones run short', () => {
    const short = { memoryFreeBytes: GIB / 8, idle: 3, target: 3, busy: 4 };
    expect(decide(short)).toMatchObject({ limitedBy: 'memory', launch: 0, retire: 1 });
  });

  it('accepts only requests that it has browsers for', () => {
    const facts = { ...quiet, idle: 2, limitedBy: 'memory' as const };
    expect(requestsWanted(facts)).toBe(2);
    expect(requestsWanted({ ...facts, isDraining: true })).toBe(0);
  });
});

describe('a machine whose cores are busy', () => {
  it('launches one browser at a time, and none for future requests', () => {
    const hot = { cpuPressure: 0.95, arrivals10s: 50 };
    expect(decide(hot)).toMatchObject({ limitedBy: 'cpu', target: 1, launch: 0 });
    expect(decide({ ...hot, idle: 0, waiting: 3, unserved: 3 }).launch).toBe(1);
    expect(decide({ cpuPressure: 0.8, limitedBy: 'cpu' }).limitedBy).toBe('cpu');
    expect(decide({ cpuPressure: 0.6, limitedBy: 'cpu' }).limitedBy).toBeNull();
  });
});

const count = fc.integer({ min: 0, max: 40 });
/** How long ago. */
const ago = fc.integer({ min: 0, max: 40 * 60_000 });
const anyBursts = fc
  .array(fc.record({ at: ago.map((ms) => NOW - ms), size: fc.integer({ min: 2, max: 60 }) }), {
    maxLength: 20,
  })
  .map((bursts) => {
    const recent = bursts.toSorted((one, other) => one.at - other.at);
    return {
      underWay: null,
      recent,
      starts: recent.map(({ at, size }) => ({ at: at - DAY, size })),
    };
  });
const anyInputs: fc.Arbitrary<Required<PoolInputs>> = fc
  .record({
    isDraining: fc.boolean(),
    ...{ idle: count, busy: count, ending: count },
    ...{ matched: count, spare: count, lost: count, unserved: count },
    arrivals10s: fc.integer({ min: 0, max: 2_000 }),
    arrivals60s: fc.integer({ min: 0, max: 10_000 }),
    launchMs: fc.integer({ min: 0, max: 20_000 }),
    minIdle: fc.integer({ min: 0, max: 10 }),
    maxIdle: fc.integer({ min: 0, max: 50 }),
    max: fc.integer({ min: 1, max: 100 }),
    launchesAtOnce: fc.integer({ min: 1, max: 16 }),
    memoryFreeBytes: fc.option(fc.integer({ min: 0, max: 64 * GIB })),
    browserBytes: fc.constantFrom(0, BROWSER, 2 * GIB),
    cpuPressure: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
    target: fc.integer({ min: 0, max: 50 }),
    limitedBy: fc.constantFrom('memory', 'cpu', null),
    calmMs: fc.integer({ min: 0, max: 200_000 }),
    calmPeak: count,
    surplusMs: fc.integer({ min: 0, max: 200_000 }),
    now: fc.constant(NOW),
    bursts: anyBursts,
  })
  // A launch is for a request, for the pool, or for a request that was withdrawn.
  .map(({ matched, lost, ...inputs }) => ({
    ...inputs,
    launching: matched + inputs.spare + lost,
    waiting: matched + inputs.unserved,
    maxIdle: Math.max(inputs.minIdle, inputs.maxIdle),
  }));

describe('in every state of a pool', () => {
  it('it never exceeds its maximum or the machine’s memory', () => {
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        const { launch, room } = decidePool(inputs);
        const { idle, launching, busy, ending, max, memoryFreeBytes, browserBytes } = inputs;
        expect(launch).toBeLessThanOrEqual(room);
        if (launch === 0) return;
        expect(idle + launching + busy + ending + launch).toBeLessThanOrEqual(max);
        expect(launching + launch).toBeLessThanOrEqual(inputs.launchesAtOnce);
        // The memory of a browser is unknown at first; until then memory sets no limit.
        if (memoryFreeBytes !== null && browserBytes > 0)
          expect((launching + launch) * browserBytes).toBeLessThan(memoryFreeBytes);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('a waiting request gets a launch if there is room; else an idle browser is ended', () => {
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        const { launch, retire, room, limitedBy } = decidePool(inputs);
        const { idle, launching, busy, ending, max, unserved, launchesAtOnce } = inputs;
        if (unserved === 0) return;
        const atOnce = limitedBy === 'cpu' ? 1 : launchesAtOnce;
        if (room > 0 && launching < atOnce) expect(launch).toBeGreaterThan(0);
        if (room > 0 || idle === 0 || ending > 0) return;
        const isFull = idle + launching + busy >= max;
        expect(mustEvict(inputs)).toBe(isFull);
        if (!isFull) expect(retire).toBeGreaterThan(0);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('a waiting request gets a launch or room for one, or the pool counts as stuck', () => {
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        const { launch, retire, target, limitedBy } = decidePool(inputs);
        const { launching, ending, unserved } = inputs;
        if (unserved === 0) return;
        const now = { ...inputs, target, limitedBy };
        const isUnderWay = launching + ending + launch + retire > 0;
        expect([isUnderWay, mustEvict(now), isStuck(now)]).toContain(true);
        if (isStuck(now)) expect([isUnderWay, mustEvict(now)]).toEqual([false, false]);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('only idle browsers are retired, and never together with a launch for the target', () => {
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        const { launch, retire, target } = decidePool(inputs);
        expect(retire).toBeLessThanOrEqual(inputs.idle);
        if (retire > 0 && !inputs.isDraining) expect(launch).toBeLessThanOrEqual(inputs.unserved);
        expect(target).toBeLessThanOrEqual(Math.max(inputs.maxIdle, inputs.target));
        if (!inputs.isDraining && inputs.target >= inputs.minIdle)
          expect(target).toBeGreaterThanOrEqual(inputs.minIdle);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('a target that was raised is not lowered within a minute, whatever the arrivals', () => {
    const seconds = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 100, maxLength: 300 });
    fc.assert(
      fc.property(seconds, (arrivals) => {
        const targets = live(arrivals);
        for (const [at, target] of targets.entries()) {
          const before = targets[at - 1] ?? 1;
          if (target >= before) continue;
          const recent = targets.slice(Math.max(0, at - 59), at);
          expect(Math.min(...recent)).toBe(before);
        }
      }),
      { numRuns: runs(100) },
    );
  });
});

/** The targets of a server, second by second, for the number of arrivals in each. */
function live(arrivals: readonly number[]): number[] {
  let target = quiet.target;
  let [belowSince, peak] = [null as number | null, 0];
  return arrivals.map((_, at) => {
    const sum = (seconds: number) =>
      arrivals.slice(Math.max(0, at + 1 - seconds), at + 1).reduce((all, one) => all + one, 0);
    const calmMs = belowSince === null ? 0 : (at - belowSince) * 1000;
    const decision = decide({
      ...{ target, idle: target, maxIdle: 40, max: 100, calmMs, calmPeak: peak },
      ...{ arrivals10s: sum(10), arrivals60s: sum(60) },
    });
    const isSame = decision.need < decision.target && decision.target === target;
    peak = isSame && belowSince !== null ? Math.max(peak, decision.need) : decision.need;
    if (!isSame || belowSince === null) belowSince = decision.need < decision.target ? at : null;
    target = decision.target;
    return target;
  });
}

type Recorded = { policy: number; inputs: PoolInputs; decision: PoolDecision };
const recorded = JSON.parse(
  readFileSync(new URL('pool-decisions.json', import.meta.url), 'utf8'),
) as Recorded[];

test.each(recorded.filter(({ policy }) => policies.includes(policy)))(
  'a decision that was recorded is made again: policy $policy, $inputs.target to $decision.target',
  ({ policy, inputs, decision }) => {
    expect(decidePool(inputs, policy)).toEqual(decision);
  },
);

it('there are recorded decisions of each version of the rules that can be run', () => {
  for (const version of policies)
    expect(recorded.filter(({ policy }) => policy === version).length).toBeGreaterThan(3);
});
