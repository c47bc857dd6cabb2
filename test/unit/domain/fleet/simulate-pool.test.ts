import { describe, expect, it, test } from 'vitest';
import { simulatePool, type SimulatedRequest } from '#src/kernel/domain/fleet/simulate-pool.ts';
import { poolTraces } from '#test/support/load/pool-traces.ts';

const T0 = Date.UTC(2026, 0, 5);
const limits = { minIdle: 2, maxIdle: 2, max: 3, launchesAtOnce: 2, launchMs: 700 };
const simulate = (requests: readonly SimulatedRequest[], until: number, policy = 3) =>
  simulatePool({ requests, limits, policy, countFrom: T0, until });

describe('a simulated pool', () => {
  it('serves what idle browsers there are at once, the next after a launch', () => {
    const requests = Array.from({ length: 3 }, () => ({ at: T0, durationMs: 60_000 }));
    expect(simulate(requests, T0 + 10_000)).toEqual({
      ...{ creates: 3, warm: 2, waitP50Ms: 0, waitP95Ms: 700 },
      ...{ idleHours: 0, meanIdle: 0, meanInUse: (2 * 10_000 + 9_300) / 10_000 },
    });
  });

  it('lets a request wait for room', () => {
    const requests = Array.from({ length: 4 }, () => ({ at: T0, durationMs: 5_000 }));
    // 5,000 until two sessions end, 100 until their browsers are gone, 700 for a launch.
    expect(simulate(requests, T0 + 10_000)).toMatchObject({ warm: 2, waitP95Ms: 5_800 });
  });

  it('counts the idle browsers of a pool without requests', () => {
    expect(simulate([], T0 + 3_600_000)).toEqual({
      ...{ creates: 0, warm: 0, waitP50Ms: 0, waitP95Ms: 0 },
      ...{ idleHours: 2, meanIdle: 2, meanInUse: 0 },
    });
  });

  it('retires the surplus, and replaces an assigned browser after the pause and a launch', () => {
    const requests = [{ at: T0, durationMs: 10_000 }];
    const { idleHours } = simulate(requests, T0 + 10_000);
    // One idle all the time; the other from 150 + 700 + 120 ms on.
    expect(idleHours * 3_600_000).toBe(10_000 + 9_030);
  });
});

describe('the policy', () => {
  test.each(poolTraces().filter(({ goals }) => goals !== null))(
    'serves $name warm from the third burst on, without many idle browsers',
    ({ goals, ...trace }) => {
      const { creates, warm, meanIdle, meanInUse } = simulatePool({ ...trace, policy: 3 });
      expect(creates).toBeGreaterThan(50);
      expect(warm / creates).toBeGreaterThanOrEqual(goals?.warm ?? 1);
      expect(meanIdle / meanInUse).toBeLessThanOrEqual(goals?.idle ?? 0);
    },
  );

  it('without memory of bursts serves few of them warm', () => {
    const [trace] = poolTraces().filter(({ name }) => name === '10 every 5 min');
    if (trace === undefined) throw new Error('no such trace');
    const { creates, warm } = simulatePool({ ...trace, policy: 2 });
    expect(warm / creates).toBeLessThan(0.5);
  });
});
