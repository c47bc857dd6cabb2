import { expect, test } from 'vitest';
import { bugs } from './bugs.ts';
import { invariants } from './invariants.ts';
import { runSeeds } from './seeds.ts';
import { simulate } from './simulate.ts';

for (const bug of bugs)
  test(`the simulation finds that ${bug.name}`, async () => {
    const { breaches } = await simulate({ seed: bug.seed, bug });
    expect(breaches).toContainEqual(expect.stringMatching(`^${bug.breaks}: `));
  });

test('for each invariant there is a bug that breaks it', () => {
  const broken = new Set(bugs.map(({ breaks }) => breaks));
  expect(broken).toEqual(new Set(invariants.map(({ name }) => name)));
});

test('a failure names its seed, the invariant, the last events and the command to run it again', async () => {
  const bug = bugs.find(({ name }) => name === 'a refund is forgotten');
  const seed = bug?.seed ?? 0;
  const failure = await runSeeds(seed, 1, bug).then(String, String);
  expect(failure).toMatch(new RegExp(`seed ${seed}: \\d+ breaches`));
  expect(failure).toContain(`  ${bug?.breaks}: `);
  expect(failure).toMatch(/\d\d:\d\d:\d\d\.\d{3} log +\d+ ledger\.slot-released/);
  expect(failure).toContain(`npm run simulate -- ${seed} 'a refund is forgotten'`);
});
