import { expect, test } from 'vitest';
import { combineCalls } from '#src/kernel/async/combine-calls.ts';

/** Doubles what is asked, and keeps each call. */
function openDoubling(max: number) {
  const calls: [group: string, asked: readonly number[]][] = [];
  const double = combineCalls<number, number>((group, asked) => {
    calls.push([group, asked]);
    return asked.includes(13) ? Promise.reject(new Error('13')) : twice(asked);
  }, max);
  return { double, calls };
}
const twice = (numbers: readonly number[]) => Promise.resolve(numbers.map((one) => 2 * one));

test('what is asked in one turn goes out as one call of each group', async () => {
  const { double, calls } = openDoubling(10);
  const asked = [double('a', 1), double('b', 2), double('a', 3)];
  expect(calls).toEqual([]);
  expect(await Promise.all(asked)).toEqual([2, 4, 6]);
  expect(calls).toEqual([
    ['a', [1, 3]],
    ['b', [2]],
  ]);
  expect(await double('a', 4)).toBe(8);
  expect(calls.length).toBe(3);
});

test('a call combines at most so many; further ones make the next', async () => {
  const { double, calls } = openDoubling(2);
  const asked = [1, 2, 3, 4, 5].map((one) => double('a', one));
  expect(await Promise.all(asked)).toEqual([2, 4, 6, 8, 10]);
  expect(calls.map(([, numbers]) => numbers)).toEqual([[1, 2], [3, 4], [5]]);
});

test('a call that fails fails all that it combines, and no other', async () => {
  const { double } = openDoubling(2);
  const asked = [12, 13, 14].map((one) => double('a', one));
  const settled = await Promise.allSettled(asked);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
});
