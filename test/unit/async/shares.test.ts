import { expect, test } from 'vitest';
import { createShares, type Shares } from '#src/async/shares.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

/** Takes as many as the owner gets. */
function takeAll(shares: Shares, owner: string): Disposable[] {
  const taken: Disposable[] = [];
  for (;;) {
    const one = shares.take(owner);
    if ('refused' in one) return taken;
    taken.push(one);
  }
}
const seconds = (count: number) => new Promise((resolve) => setTimeout(resolve, count * 1_000));

test('an owner has a third at most, also alone', () => {
  const shares = createShares(24);
  for (const owner of ['a', 'b', 'c']) {
    expect(takeAll(shares, owner)).toHaveLength(8);
    expect(shares.take(owner)).toEqual({ refused: 'owner', limit: 8 });
  }
});

test('what is given back is for the one that got none, not for those that have their share', () => {
  const shares = createShares(24);
  const [ofA] = ['a', 'b', 'c'].map((owner) => takeAll(shares, owner));
  expect(shares.take('d')).toEqual({ refused: 'all', limit: 6 });
  for (const place of ofA?.slice(0, 3) ?? []) place[Symbol.dispose]();
  // It has five, and six are its share while four want some: one is for it.
  expect(takeAll(shares, 'a')).toHaveLength(1);
  expect(shares.take('b')).toEqual({ refused: 'owner', limit: 6 });
  expect(takeAll(shares, 'd')).toHaveLength(2);
});

test('one that asked and did not come again counts for ten seconds', async () => {
  const shares = createShares(24);
  const [ofA] = ['a', 'b', 'c'].map((owner) => takeAll(shares, owner));
  expect(shares.take('d')).toMatchObject({ refused: 'all' });
  for (const place of ofA ?? []) place[Symbol.dispose]();
  expect(takeAll(shares, 'a')).toHaveLength(6);
  await seconds(11);
  expect(takeAll(shares, 'a')).toHaveLength(2);
});

test('an amount is taken as a whole, and given back once', () => {
  const shares = createShares(300);
  const half = shares.take('a', 60) as Disposable;
  expect(shares.take('a', 60)).toEqual({ refused: 'owner', limit: 100 });
  half[Symbol.dispose]();
  half[Symbol.dispose]();
  expect(shares.take('a', 101)).toMatchObject({ refused: 'owner' });
  expect(shares.take('a', 100)).not.toHaveProperty('refused');
});

test('what is less than three is for one owner each', () => {
  const shares = createShares(2);
  expect(takeAll(shares, 'a')).toHaveLength(1);
  expect(takeAll(shares, 'b')).toHaveLength(1);
  expect(shares.take('c')).toEqual({ refused: 'all', limit: 1 });
});
