import { expect, test } from 'vitest';
import { BoundedMap } from '#src/kernel/async/bounded-map.ts';

test('beyond its bound the entry goes that was set the longest time ago; a read keeps none', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1).set('b', 2).set('a', 3);
  map.get('b');
  map.set('c', 4);
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ]);
});
