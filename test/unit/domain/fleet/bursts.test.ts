import { describe, expect, it } from 'vitest';
import type { PoolBursts, PoolInputs } from '#events/pool.ts';
import { expectBursts, noBursts, noteRequest } from '#src/kernel/domain/fleet/bursts.ts';
import { decidePool } from '#src/kernel/domain/fleet/pool-policy.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const T0 = Date.UTC(2026, 0, 5, 9);
const pace = { launchMs: 1_000, launchesAtOnce: 2, maxIdle: 100 };

/** The bursts after `size` requests at each of the times, within a tenth of a second. */
function after(times: readonly number[], size: number, before = noBursts): PoolBursts {
  let bursts = before;
  for (const at of times)
    for (let request = 0; request < size; request += 1)
      bursts = noteRequest(bursts, at + Math.round((request * 100) / size));
  return bursts;
}
const every = (gap: number, count: number, from = T0) =>
  Array.from({ length: count }, (_, index) => from + index * gap);
const expected = (bursts: PoolBursts, now: number) => {
  const { due, resting } = expectBursts(bursts, now, pace);
  return { due, resting };
};

describe('requests', () => {
  it('that follow each other within a second are one burst', () => {
    const bursts = after([T0, T0 + MINUTE], 4);
    expect(bursts.recent).toEqual([{ at: T0, size: 4 }]);
    expect(bursts.underWay).toMatchObject({ at: T0 + MINUTE, size: 4 });
  });

  it('that come one by one are none', () => {
    expect(after(every(2 * SECOND, 100), 1).recent).toEqual([]);
  });

  it('that go on for more than ten seconds are a steady load', () => {
    const steady = after(every(SECOND / 2, 30), 1);
    expect(noteRequest(steady, T0 + MINUTE).recent).toEqual([]);
  });

  it('of a thousand sizes and times are remembered within a bound', () => {
    let bursts = noBursts;
    for (let round = 0; round < 1_000; round += 1)
      bursts = after([T0 + round * HOUR], 2 + ((round * 37) % 500), bursts);
    expect(bursts.recent.length).toBeLessThanOrEqual(48);
    expect(bursts.starts.length).toBeLessThanOrEqual(16);
    const oldest = Math.min(...[...bursts.recent, ...bursts.starts].map(({ at }) => at));
    expect(oldest).toBeGreaterThan(T0 + 1_000 * HOUR - 8 * DAY);
  });

  it('in large bursts are remembered among many small ones', () => {
    const large = after(every(5 * MINUTE, 3), 50);
    const bursts = after(every(10 * SECOND, 60, T0 + 11 * MINUTE), 2, large);
    expect(bursts.recent.filter(({ size }) => size === 50)).toHaveLength(3);
  });
});

describe('bursts of ten every five minutes', () => {
  it('are unknown after the first', () => {
    expect(expected(after([T0], 10), T0 + 5 * MINUTE)).toEqual({ due: 0, resting: 0 });
  });

  it('rest after the second for 0.6 of the gap, less the time of the launches', () => {
    const bursts = after(every(5 * MINUTE, 2), 10);
    const last = T0 + 5 * MINUTE;
    // Five times two launches, each 1.25 s, and a second.
    const due = last + 3 * MINUTE - 7_250;
    expect(expected(bursts, last + SECOND)).toEqual({ due: 0, resting: 10 });
    expect(expected(bursts, due - 1)).toEqual({ due: 0, resting: 10 });
    expect(expected(bursts, due)).toEqual({ due: 10, resting: 0 });
  });

  it('rest for 0.8 of the shortest gap when three are known', () => {
    const bursts = after(every(5 * MINUTE, 4), 10);
    const due = T0 + 15 * MINUTE + 4 * MINUTE - 7_250;
    expect(expected(bursts, due - 1).due).toBe(0);
    expect(expected(bursts, due).due).toBe(10);
  });

  it('are due until twice the longest gap has passed, and again from the next one on', () => {
    const bursts = after(every(5 * MINUTE, 3), 10);
    const last = T0 + 10 * MINUTE;
    expect(expected(bursts, last + 10 * MINUTE).due).toBe(10);
    expect(expected(bursts, last + 10 * MINUTE + 1)).toEqual({ due: 0, resting: 0 });
    const resumed = after([last + 2 * HOUR], 10, bursts);
    expect(expected(resumed, last + 2 * HOUR + 5 * MINUTE).due).toBe(10);
  });

  it('have come once three quarters of their requests have', () => {
    const bursts = after(every(5 * MINUTE, 3), 10);
    const next = T0 + 15 * MINUTE;
    expect(expected(after([next], 7, bursts), next + SECOND).due).toBe(10);
    expect(expected(after([next], 8, bursts), next + SECOND)).toEqual({ due: 0, resting: 10 });
  });

  it('say nothing when the clock was set back', () => {
    const bursts = after(every(5 * MINUTE, 3), 10);
    expect(expected(bursts, T0 - HOUR)).toEqual({ due: 0, resting: 0 });
  });
});

it('bursts less than a minute and a half apart are due all the time', () => {
  const bursts = after(every(20 * SECOND, 3), 4);
  expect(expected(bursts, T0 + 40 * SECOND + 200)).toEqual({ due: 4, resting: 0 });
});

it('bursts more than half an hour apart have no rhythm', () => {
  const bursts = after(every(31 * MINUTE, 3), 4);
  expect(expected(bursts, T0 + 93 * MINUTE)).toEqual({ due: 0, resting: 0 });
});

it('of two rhythms the larger burst that is due counts', () => {
  const large = after(every(20 * MINUTE, 2), 50);
  const last = T0 + 20 * MINUTE;
  const bursts = after(every(2 * MINUTE, 4, last + MINUTE), 5, large);
  expect(expected(bursts, last + 9 * MINUTE)).toEqual({ due: 5, resting: 50 });
  expect(expected(bursts, last + 12 * MINUTE).due).toBe(50);
});

describe('the first burst of a day', () => {
  const twoDays = after([T0, T0 + 5 * MINUTE, T0 + DAY, T0 + DAY + 5 * MINUTE], 10);
  const third = T0 + 2 * DAY;
  it('is due at the time of day of two days before, ten minutes more or less', () => {
    expect(expected(twoDays, third - 10 * MINUTE - 1).due).toBe(0);
    expect(expected(twoDays, third - 10 * MINUTE).due).toBe(10);
    expect(expected(twoDays, third + 10 * MINUTE).due).toBe(10);
    expect(expected(twoDays, third + 15 * MINUTE + 1).due).toBe(0);
  });

  it('is not due any more when it has come', () => {
    expect(expected(after([third], 10, twoDays), third + SECOND)).toEqual({ due: 0, resting: 10 });
  });

  it('is not due after one day', () => {
    expect(expected(after([T0, T0 + 5 * MINUTE], 10), T0 + DAY).due).toBe(0);
  });
});

describe('the target of a pool that knows bursts of ten', () => {
  const bursts = after(every(5 * MINUTE, 3), 10);
  const last = T0 + 10 * MINUTE;
  const inputs: PoolInputs = {
    ...{ isDraining: false, idle: 1, launching: 0, spare: 0, busy: 10, ending: 0, waiting: 0 },
    ...{ unserved: 0, arrivals10s: 0, arrivals60s: 0, minIdle: 1, max: 100 },
    ...{ ...pace, memoryFreeBytes: null, browserBytes: 0, cpuPressure: null },
    ...{ target: 1, limitedBy: null, calmMs: 0, calmPeak: 0, surplusMs: 0 },
    ...{ now: last + 5 * MINUTE, bursts },
  };
  const decide = (other: Partial<PoolInputs>) => decidePool({ ...inputs, ...other });

  it('covers the burst that is due, within the bounds', () => {
    expect(decide({})).toMatchObject({ need: 10, target: 10, launch: 2 });
    expect(decide({ maxIdle: 6 }).target).toBe(6);
    expect(decide({ isDraining: true }).target).toBe(0);
  });

  it('is not raised for it while the cores are busy with sessions', () => {
    expect(decide({ cpuPressure: 0.95 })).toMatchObject({ limitedBy: 'cpu', target: 1, launch: 0 });
    expect(decide({ cpuPressure: 0.95, busy: 0 })).toMatchObject({ target: 10, launch: 1 });
  });

  it('is lowered at once when the burst has come, which does not count as steady load', () => {
    const come = { now: last + SECOND, target: 10, arrivals10s: 10, arrivals60s: 10 };
    expect(decide(come)).toMatchObject({ need: 1, target: 1, launch: 0 });
    // Other requests do.
    expect(decide({ ...come, arrivals10s: 30 })).toMatchObject({ need: 5, target: 5 });
    // What is left of the target is lowered late, as ever.
    expect(decide({ ...come, target: 5 }).target).toBe(5);
  });

  it('is that of policy 2 without bursts', () => {
    for (const arrivals10s of [0, 1, 10, 100])
      expect(decide({ arrivals10s, bursts: noBursts })).toEqual(
        decidePool({ ...inputs, arrivals10s }, 2),
      );
  });
});
