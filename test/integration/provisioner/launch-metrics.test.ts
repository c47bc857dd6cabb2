import { expect, test } from 'vitest';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import { measureLaunches } from '#src/roles/provisioner/metrics.ts';

const spec = { vncPassword: 'secret12', screen: { width: 800, height: 600 } };

/** Simulated browsers and the outcomes of their launches as they are counted. */
async function counted(options: { launchMs: number; failRate: number }) {
  const outcomes: string[] = [];
  const simulated = await createSimulatedBrowsers(options);
  const browsers = measureLaunches(simulated, {
    browserLaunched: (outcome) => void outcomes.push(outcome),
  });
  return { browsers, outcomes, [Symbol.asyncDispose]: () => simulated[Symbol.asyncDispose]() };
}

test('launches are counted by their outcome', async () => {
  await using good = await counted({ launchMs: 1, failRate: 0 });
  await good.browsers.launch({ workloadId: 'wl_1', ...spec });
  expect(good.outcomes).toEqual(['launched']);
  await using bad = await counted({ launchMs: 1, failRate: 1 });
  await expect(bad.browsers.launch({ workloadId: 'wl_1', ...spec })).rejects.toThrow();
  expect(bad.outcomes).toEqual(['failed']);
});

test('a launch that was cancelled counts neither as launched nor as failed', async () => {
  await using some = await counted({ launchMs: 3_600_000, failRate: 0 });
  const launching = expect(some.browsers.launch({ workloadId: 'wl_1', ...spec })).rejects.toThrow(
    'stopped during the launch',
  );
  await some.browsers.stop('wl_1');
  await launching;
  expect(some.outcomes).toEqual([]);
});
