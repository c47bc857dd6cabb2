import { expect, test } from 'vitest';
import { createArrivals } from '#src/roles/provisioner/pool/arrivals.ts';

test('arrivals are counted by the second, and forgotten after a minute', () => {
  let now = 1_000_000;
  const arrivals = createArrivals(
    () => now,
    () => now,
  );
  arrivals.note();
  arrivals.note();
  now += 5_000;
  arrivals.note();
  expect([arrivals.last(1), arrivals.last(10), arrivals.last(60)]).toEqual([1, 3, 3]);
  now += 8_000;
  expect([arrivals.last(10), arrivals.last(60)]).toEqual([1, 3]);
  now += 60_000;
  expect(arrivals.last(60)).toBe(0);
});
