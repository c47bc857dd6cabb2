import { expect, test } from 'vitest';
import { bugs } from './bugs.ts';
import { invariants } from './invariants.ts';
import { runSeeds } from './seeds.ts';
import { simulate } from './simulate.ts';

/** Each planted bug is found by about one seed in ten or more, so these are enough. */
const SEEDS = 100;

test.each(bugs)('the simulation finds that $name', async (bug) => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { breaches } = await simulate({ seed, bug });
    if (breaches.some((breach) => breach.startsWith(`${bug.breaks}: `))) return;
  }
  expect.fail(`none of ${SEEDS} seeds breaks "${bug.breaks}"`);
});

test('for each invariant there is a bug that breaks it', () => {
  const broken = new Set(bugs.map(({ breaks }) => breaks));
  expect(broken).toEqual(new Set(invariants.map(({ name }) => name)));
});

test('a failure names its seed, the invariant, the last events and the command to run it again', async () => {
  const bug = bugs.find(({ name }) => name === 'a refund is forgotten');
  const failure = await runSeeds(1, SEEDS, bug).then(String, String);
  const seed = /seed (\d+): \d+ breaches/.exec(failure)?.[1];
  expect(failure).toContain(`  ${bug?.breaks}: `);
  expect(failure).toMatch(/\d\d:\d\d:\d\d\.\d{3} log +\d+ ledger\.slot-released/);
  expect(failure).toContain(`npm run simulate -- ${seed} 'a refund is forgotten'`);
});
