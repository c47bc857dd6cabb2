import { expect, test } from 'vitest';
import { createPlaces, type Places } from '#src/kernel/async/places.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

/** Takes as many as the owner gets. */
function takeAll(places: Places, owner: string): Disposable[] {
  const taken: Disposable[] = [];
  for (;;) {
    const one = places.take(owner);
    if ('refused' in one) return taken;
    taken.push(one);
  }
}
const seconds = (count: number) => new Promise((resolve) => setTimeout(resolve, count * 1_000));

test('an owner has a third at most, also alone', () => {
  const places = createPlaces({ max: 24 });
  for (const owner of ['a', 'b', 'c']) {
    expect(takeAll(places, owner)).toHaveLength(8);
    expect(places.take(owner)).toEqual({ refused: 'owner', limit: 8 });
  }
});

test('what is given back is for the one that got none, not for those that have their share', () => {
  const places = createPlaces({ max: 24 });
  const [ofA] = ['a', 'b', 'c'].map((owner) => takeAll(places, owner));
  expect(places.take('d')).toEqual({ refused: 'all', limit: 6 });
  for (const place of ofA?.slice(0, 3) ?? []) place[Symbol.dispose]();
  // It has five, and six are its share while four want some: one is for it.
  expect(takeAll(places, 'a')).toHaveLength(1);
  expect(places.take('b')).toEqual({ refused: 'owner', limit: 6 });
  expect(takeAll(places, 'd')).toHaveLength(2);
});

test('one that asked and did not come again counts for ten seconds', async () => {
  const places = createPlaces({ max: 24 });
  const [ofA] = ['a', 'b', 'c'].map((owner) => takeAll(places, owner));
  expect(places.take('d')).toMatchObject({ refused: 'all' });
  for (const place of ofA ?? []) place[Symbol.dispose]();
  expect(takeAll(places, 'a')).toHaveLength(6);
  await seconds(11);
  expect(takeAll(places, 'a')).toHaveLength(2);
});

test('an amount is taken as a whole, and given back once', () => {
  const places = createPlaces({ max: 300 });
  const half = places.take('a', 60) as Disposable;
  expect(places.take('a', 60)).toEqual({ refused: 'owner', limit: 100 });
  half[Symbol.dispose]();
  half[Symbol.dispose]();
  expect(places.take('a', 101)).toMatchObject({ refused: 'owner' });
  expect(places.take('a', 100)).not.toHaveProperty('refused');
});

test('what is less than three is for one owner each', () => {
  const places = createPlaces({ max: 2 });
  expect(takeAll(places, 'a')).toHaveLength(1);
  expect(takeAll(places, 'b')).toHaveLength(1);
  expect(places.take('c')).toEqual({ refused: 'all', limit: 1 });
});

test('an owner has `perOwner` at most, all together have `max`', () => {
  const places = createPlaces({ max: 5, perOwner: 3 });
  const ofA = takeAll(places, 'a');
  expect(ofA).toHaveLength(3);
  expect(places.take('a')).toEqual({ refused: 'owner', limit: 3 });
  expect(takeAll(places, 'b')).toHaveLength(2);
  expect(places.take('b')).toEqual({ refused: 'all', limit: 3 });
  expect(places.take('c')).toEqual({ refused: 'all', limit: 3 });
  ofA[0]?.[Symbol.dispose]();
  expect(takeAll(places, 'a')).toHaveLength(1);
});
