import { expect, test } from 'vitest';
import { runSeeds } from './seeds.ts';
import { eventually } from '#test/support/service/service.ts';
import { simulate } from './simulate.ts';

/** The first seeds; the two halves of the soak run many more. */
const SEEDS = 20;

test(`${SEEDS} simulations of the whole service keep every invariant`, async () => {
  const { seeds, events } = await runSeeds(1, SEEDS);
  expect(seeds).toBe(SEEDS);
  expect(events).toBeGreaterThan(SEEDS * 50);
});

test('the same seed gives the same story, and another seed another one', async () => {
  const [one, same, other] = [
    await simulate({ seed: 4711, tellStory: true }),
    await simulate({ seed: 4711, tellStory: true }),
    await simulate({ seed: 4712, tellStory: true }),
  ];
  expect(same).toEqual(one);
  expect(other.digest).not.toBe(one.digest);
});

test('code outside of a simulation has the real time and the real randomness', async () => {
  await simulate({ seed: 1 });
  const [before, asked] = [Date.now(), performance.now()];
  await eventually(() => performance.now() > asked + 5, 'time passes');
  expect(Date.now()).toBeGreaterThanOrEqual(before + 4);
  expect(new Set(Array.from({ length: 10 }, () => Math.random())).size).toBe(10);
});
