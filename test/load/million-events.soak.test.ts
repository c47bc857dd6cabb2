import { expect, test } from 'vitest';
import { benchRebuild } from '#test/bench/rebuild.ts';
import { isSoak, soakOr } from '#test/support/soak.ts';

/**
 * 50,000 events are several pulls and many batches, so a rebuild that skips or repeats events at
 * their borders fails in either form. Only a million show memory that grows with the store, and
 * rates: those of a short run are start-up time.
 */
const EVENTS = soakOr(1_000_000, 50_000);
const UNTIMED = [
  'events that a rebuild passed over',
  'memory of a process that rebuilds, MiB',
  'verify ends with equal',
];

test(`${EVENTS} events are rebuilt, verified and listed within the bounds`, async ({
  annotate,
}) => {
  const verdicts = await benchRebuild((line) => process.stdout.write(`${line}\n`), EVENTS);
  const judged = isSoak ? verdicts : verdicts.filter(({ name }) => UNTIMED.includes(name));
  for (const { name, ratio, goal } of judged)
    await annotate(`${name}: ${ratio.toFixed(2)} (${goal})`);
  expect(judged.map(({ name }) => name)).toEqual(expect.arrayContaining(UNTIMED));
  expect(judged.filter(({ isMet }) => !isMet)).toEqual([]);
});
