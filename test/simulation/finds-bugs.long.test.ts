import { expect, test } from 'vitest';
import { hasNewSeeds, seed as drawn } from '#test/support/seeds/seeds.ts';
import { bugs } from './bugs.ts';
import { simulate } from './simulate.ts';

/** Each planted bug is found by about one seed in ten or more, so these are enough. */
const SEEDS = 100;
/** Beyond the seeds that `npm test` runs. */
const FIRST = hasNewSeeds ? drawn : 1_001;

test.each(bugs)('the simulation finds anew that $name', async (bug) => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    const { breaches } = await simulate({ seed, bug });
    if (breaches.some((breach) => breach.startsWith(`${bug.breaks}: `))) return;
  }
  expect.fail(`none of ${SEEDS} seeds from ${FIRST} on breaks "${bug.breaks}"`);
});
