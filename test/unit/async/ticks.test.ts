import { expect, it, vi } from 'vitest';
import { untilTickOf } from '#src/async/ticks.ts';

it.each([
  [0, 500],
  [1, 499],
  [499.5, 1],
  [500, 500],
  [1_250, 250],
])('at %s ms the next tick of 500 ms is %s ms away', (now, expected) => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(now);
  expect(untilTickOf(500)).toBe(expected);
  clock.mockRestore();
});
