import { expect, test } from 'vitest';
import { createSerialQueue } from '#src/async/serial-queue.ts';
import { Unavailable } from '#src/errors.ts';

test('tasks run one after the other, also after a failure; beyond the limit they are rejected', async () => {
  const inTurn = createSerialQueue(3, 'event-log');
  const doors = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const begun: number[] = [];
  const asked = doors.map(({ promise }, n) =>
    inTurn(async () => {
      begun.push(n);
      await promise;
      return n;
    }),
  );
  const refused = inTurn(() => Promise.resolve());
  await expect(refused).rejects.toThrow(Unavailable);
  await expect(refused).rejects.toMatchObject({ part: 'event-log' });
  await new Promise(setImmediate);
  expect(begun).toEqual([0]);
  doors[0]?.reject(new Error('not this one'));
  await expect(asked[0]).rejects.toThrow('not this one');
  doors[2]?.resolve();
  await new Promise(setImmediate);
  expect(begun).toEqual([0, 1]);
  doors[1]?.resolve();
  expect(await Promise.all(asked.slice(1))).toEqual([1, 2]);
  expect(begun).toEqual([0, 1, 2]);
  expect(await inTurn(() => Promise.resolve('free again'))).toBe('free again');
});
