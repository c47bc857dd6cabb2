import { afterEach, expect, it, vi } from 'vitest';
import { everyTick, untilTickOf } from '#src/kernel/async/ticks.ts';

afterEach(() => void vi.useRealTimers());

it.each([
  [0, 500],
  [1, 499],
  [1_250, 250],
  [497.5, 3],
  // A timer has fired a little early: the tick is over.
  [498, 502],
  [499.5, 501],
])('at %s ms the next tick of 500 ms is %s ms away', (now, expected) => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(now);
  expect(untilTickOf(500)).toBe(expected);
  clock.mockRestore();
});

it('works of the same period are done at the same moment, until they are disposed', () => {
  vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const done: string[] = [];
  const note = (what: string) => () => void done.push(`${what} at ${performance.now()}`);
  vi.advanceTimersByTime(100);
  using _ = everyTick(1_000, note('one'));
  vi.advanceTimersByTime(450);
  const other = everyTick(1_000, note('other'));
  vi.advanceTimersByTime(1_450);
  expect(done).toEqual(['one at 1000', 'other at 1000', 'one at 2000', 'other at 2000']);
  other[Symbol.dispose]();
  vi.advanceTimersByTime(1_000);
  expect(done.slice(4)).toEqual(['one at 3000']);
});
