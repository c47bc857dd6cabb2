import { expect, test } from 'vitest';
import { createFairExecutor } from '#src/kernel/async/fair-executor.ts';
import { createFairSlots } from '#src/kernel/async/fair-slots.ts';
import { Unavailable } from '#src/kernel/errors.ts';

const settled = () => new Promise(setImmediate);

test('tasks run one after the other, also after a failure', async () => {
  const inTurn = createFairExecutor({ places: 3, placesPerOwner: 3 }, 'event-log');
  const doors = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const begun: number[] = [];
  const asked = doors.map(({ promise }, n) =>
    inTurn('acme', async () => {
      begun.push(n);
      await promise;
      return n;
    }),
  );
  const refused = inTurn('acme', () => Promise.resolve());
  await expect(refused).rejects.toThrow(Unavailable);
  await expect(refused).rejects.toMatchObject({ part: 'event-log' });
  await settled();
  expect(begun).toEqual([0]);
  doors[0]?.reject(new Error('not this one'));
  await expect(asked[0]).rejects.toThrow('not this one');
  doors[2]?.resolve();
  await settled();
  expect(begun).toEqual([0, 1]);
  doors[1]?.resolve();
  expect(await Promise.all(asked.slice(1))).toEqual([1, 2]);
  expect(begun).toEqual([0, 1, 2]);
  expect(await inTurn('acme', () => Promise.resolve('free again'))).toBe('free again');
});

test('owners have turns, whatever the number of their tasks', async () => {
  const inTurn = createFairExecutor({ places: 100, placesPerOwner: 10 }, 'event-log');
  const begun: string[] = [];
  const run = (owner: string) =>
    inTurn(owner, async () => {
      begun.push(owner);
      await settled();
    });
  const many = Array.from({ length: 10 }, () => run('many'));
  const few = [run('few'), run('few')];
  await Promise.all([...many, ...few]);
  expect(begun.slice(0, 5)).toEqual(['many', 'many', 'few', 'many', 'few']);
});

test('one owner fills its own places, not those of others; all together are bounded', async () => {
  const inTurn = createFairExecutor({ places: 5, placesPerOwner: 2 }, 'read-model');
  const door = Promise.withResolvers<void>();
  const run = (owner: string) => inTurn(owner, () => door.promise);
  const kept = [run('a'), run('a'), run('b'), run('b'), run('c')];
  await expect(run('a')).rejects.toThrow(Unavailable);
  await expect(run('c')).rejects.toThrow(Unavailable);
  door.resolve();
  await Promise.all(kept);
  await expect(run('a')).resolves.toBeUndefined();
});

test('one owner holds only its share of the slots, and what it gives back goes to another', async () => {
  const slots = createFairSlots({ slots: 3, slotsPerOwner: 2 });
  const granted: string[] = [];
  const take = async (owner: string, signal?: AbortSignal) => {
    const slot = await slots.acquire(owner, signal);
    granted.push(owner);
    return slot as Disposable;
  };
  const held = await Promise.all([take('a'), take('a')]);
  const third = take('a');
  await settled();
  expect([granted.length, slots.isWanted()]).toEqual([2, true]);
  const other = await take('b');
  const fourth = take('b');
  await settled();
  expect(granted).toEqual(['a', 'a', 'b']);
  // The freed slot goes to the owner that has waited the longest and holds less than its share.
  held[0]?.[Symbol.dispose]();
  held[0]?.[Symbol.dispose]();
  await third;
  expect(granted).toEqual(['a', 'a', 'b', 'a']);
  other[Symbol.dispose]();
  await fourth;
  expect(slots.isWanted()).toBe(false);
});

test('who gives up while it waits leaves its place', async () => {
  const slots = createFairSlots({ slots: 1, slotsPerOwner: 1, placesPerOwner: 2 });
  const slot = await slots.acquire('a');
  const stop = new AbortController();
  const waiting = slots.acquire('a', stop.signal);
  expect(slots.acquire('a')).toBeNull();
  stop.abort();
  (await waiting)?.[Symbol.dispose]();
  expect(slots.isWanted()).toBe(false);
  const next = slots.acquire('a');
  slot?.[Symbol.dispose]();
  expect(await next).not.toBeNull();
});
