import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CheckNotRun, createAvailability } from '#src/browsers/availability.ts';

const CHECK_EVERY_MS = 60_000;
const quiet = { warn: () => {} };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('an engine is checked again after each check', async () => {
  const guard = { check: vi.fn(async () => {}) };
  using _ = createAvailability(guard, quiet, CHECK_EVERY_MS);
  await vi.advanceTimersByTimeAsync(3 * CHECK_EVERY_MS);
  expect(guard.check).toHaveBeenCalledTimes(3);
});

test('an engine whose check fails is unavailable until one succeeds', async () => {
  let isIsolated = false;
  const guard = {
    check: async () => {
      if (!isIsolated) throw new Error('not isolated');
    },
  };
  const said: boolean[] = [];
  using availability = createAvailability(guard, quiet, CHECK_EVERY_MS);
  availability.onChange((isAvailable) => said.push(isAvailable));
  await vi.advanceTimersByTimeAsync(2 * CHECK_EVERY_MS);
  expect(said).toEqual([false]);
  isIsolated = true;
  await vi.advanceTimersByTimeAsync(CHECK_EVERY_MS);
  expect(said).toEqual([false, true]);
});

test('a check that could not run changes nothing: what the last one found stands', async () => {
  let found: Error | null = new CheckNotRun('no node has room');
  const guard = {
    check: async () => {
      if (found !== null) throw found;
    },
  };
  const said: boolean[] = [];
  using availability = createAvailability(guard, quiet, CHECK_EVERY_MS);
  availability.onChange((isAvailable) => said.push(isAvailable));
  await vi.advanceTimersByTimeAsync(2 * CHECK_EVERY_MS);
  expect(said).toEqual([]);
  found = new Error('not isolated');
  await vi.advanceTimersByTimeAsync(CHECK_EVERY_MS);
  expect(said).toEqual([false]);
  found = new CheckNotRun('no node has room');
  await vi.advanceTimersByTimeAsync(CHECK_EVERY_MS);
  expect(said).toEqual([false]);
  found = null;
  await vi.advanceTimersByTimeAsync(CHECK_EVERY_MS);
  expect(said).toEqual([false, true]);
});

test('an engine that is let go of during a check is not checked again, nor reported', async () => {
  const underWay = Promise.withResolvers<void>();
  const guard = { check: vi.fn(() => underWay.promise) };
  const said: boolean[] = [];
  const availability = createAvailability(guard, quiet, CHECK_EVERY_MS);
  availability.onChange((isAvailable) => said.push(isAvailable));
  await vi.advanceTimersByTimeAsync(CHECK_EVERY_MS);
  expect(guard.check).toHaveBeenCalledTimes(1);
  availability[Symbol.dispose]();
  underWay.reject(new Error('not isolated'));
  await vi.advanceTimersByTimeAsync(10 * CHECK_EVERY_MS);
  expect(guard.check).toHaveBeenCalledTimes(1);
  expect(said).toEqual([]);
});
