import { expect, test } from 'vitest';
import { benchRebuild } from '#test/bench/rebuild.ts';

test('a million events are rebuilt, verified and listed within their bounds', async () => {
  const verdicts = await benchRebuild((line) => process.stdout.write(`${line}\n`));
  for (const { name, ratio, goal } of verdicts)
    process.stdout.write(`${name}: ${ratio.toFixed(3)} (${goal})\n`);
  expect(verdicts.length).toBeGreaterThan(5);
  expect(verdicts.filter(({ isMet }) => !isMet)).toEqual([]);
});
