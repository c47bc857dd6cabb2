import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createSteering } from '#src/roles/gateway/connections/steering.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function begin() {
  const changes: (string | null)[] = [];
  const steering = createSteering(Date.now, () => changes.push(steering.heldBy()));
  return { steering, changes };
}
const until = (ms: number, handoffId = 'h1') => ({ handoffId, untilMs: Date.now() + ms });

test('a hold begins and ends with the events that say so', () => {
  const { steering, changes } = begin();
  expect(steering.heldBy()).toBeNull();
  steering.set(null, 4);
  steering.set(until(1_000), 5);
  steering.set(until(1_000), 6);
  expect(steering.heldBy()).toBe('h1');
  steering.set(null, 7);
  steering.set(until(1_000, 'h2'), 9);
  expect(changes).toEqual(['h1', null, 'h2']);
});

test('an event that is older than what is known changes nothing', () => {
  const { steering, changes } = begin();
  steering.set(until(1_000), 10);
  steering.set(null, 9);
  expect(steering.heldBy()).toBe('h1');
  steering.set(null, 11);
  steering.set(until(1_000), 10);
  expect(changes).toEqual(['h1', null]);
});

test('a hold ends with its time without an event, and one that is over never begins', () => {
  const { steering, changes } = begin();
  steering.set(until(60_000), 1);
  vi.advanceTimersByTime(59_999);
  expect(steering.heldBy()).toBe('h1');
  vi.advanceTimersByTime(2);
  expect(steering.heldBy()).toBeNull();
  steering.set(until(0), 2);
  expect(changes).toEqual(['h1', null]);
});

test('a disposed one sets no timer off', () => {
  const { steering, changes } = begin();
  steering.set(until(1_000), 1);
  steering[Symbol.dispose]();
  vi.advanceTimersByTime(5_000);
  expect(changes).toEqual(['h1']);
});
