import { expect, test } from 'vitest';
import { bugs, type Bug } from './bugs.ts';
import { invariants } from './invariants.ts';
import { runSeeds } from './seeds.ts';
import { simulate } from './simulate.ts';

/** A change of the service gives seeds other stories: then one of the first sixty finds a bug. */
const SEEDS = 60;

for (const bug of bugs)
  test(`the simulation finds that ${bug.name}`, async ({ annotate }) => {
    const seed = await findingSeed(bug);
    expect(seed, `none of ${SEEDS} seeds breaks "${bug.breaks}"`).not.toBeNull();
    if (seed !== bug.seed) await annotate(`seed ${seed} finds it: quicker where bugs.ts says so`);
  });

/** The recorded seed if it finds the bug, or the first that does; null: none. */
async function findingSeed(bug: Bug): Promise<number | null> {
  for (const seed of [bug.seed, ...Array.from({ length: SEEDS }, (_, index) => index + 1)]) {
    const { breaches } = await simulate({ seed, bug });
    if (breaches.some((breach) => breach.startsWith(`${bug.breaks}: `))) return seed;
  }
  return null;
}

test('for each invariant there is a bug that breaks it', () => {
  const broken = new Set(bugs.map(({ breaks }) => breaks));
  expect(broken).toEqual(new Set(invariants.map(({ name }) => name)));
});

test('a failure names its seed, the invariant, the last events and the command to run it again', async () => {
  const bug = bugs.find(({ name }) => name === 'a refund is forgotten');
  const seed = bug === undefined ? null : await findingSeed(bug);
  if (seed === null) return expect.fail('no seed finds the bug');
  const failure = await runSeeds(seed, 1, bug).then(String, String);
  expect(failure).toMatch(new RegExp(`seed ${seed}: \\d+ breaches`));
  expect(failure).toContain(`  ${bug?.breaks}: `);
  expect(failure).toMatch(/\d\d:\d\d:\d\d\.\d{3} log +\d+ ledger\.slot-released/);
  expect(failure).toContain(`npm run simulate -- ${seed} 'a refund is forgotten'`);
});
