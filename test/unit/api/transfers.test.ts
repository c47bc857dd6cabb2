import { expect, test } from 'vitest';
import { createTransfers, placesFor } from '#src/roles/api/http/transfers.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

const PLACES = { upload: 6, download: 6, extension: 3, command: 3 };
const FULL = { code: 'UNAVAILABLE', context: { part: 'transfers' }, retryAfterSeconds: 5 };

async function place(taken: Promise<Disposable | object>): Promise<Disposable> {
  const found = await taken;
  if (isRejection(found)) throw new Error(`refused: ${found.code}`);
  return found as Disposable;
}

test('an organization has a third of the places, and waits 10 s for another one', async () => {
  const transfers = createTransfers(PLACES);
  const held = [await place(transfers.begin('upload', 'acme'))];
  held.push(await place(transfers.begin('upload', 'acme')));
  const begunAt = performance.now();
  expect(await transfers.begin('upload', 'acme')).toMatchObject({
    code: 'TRANSFER_LIMIT_EXCEEDED',
    context: { limit: 2 },
    retryAfterSeconds: 5,
  });
  expect(performance.now() - begunAt).toBe(10_000);
  // Another kind, and another organization.
  await place(transfers.begin('download', 'acme'));
  await place(transfers.begin('upload', 'other'));
  const waiting = transfers.begin('upload', 'acme');
  held[0]?.[Symbol.dispose]();
  held[0]?.[Symbol.dispose]();
  await place(waiting);
});

test.each(['upload', 'download', 'extension'] as const)(
  'two organizations leave a third one a place in the smallest process: %s',
  async (kind) => {
    const transfers = createTransfers(placesFor(32 * 1024 ** 2, 1));
    for (const one of ['a', 'a', 'b', 'b', 'b']) void transfers.begin(kind, one);
    await place(transfers.begin(kind, 'third'));
  },
);

test('those that wait are bounded too, and refused at once beyond', async () => {
  const transfers = createTransfers(PLACES);
  const waiting = Array.from({ length: 4 }, () => transfers.begin('upload', 'acme'));
  const begunAt = performance.now();
  expect(await transfers.begin('upload', 'acme')).toHaveProperty('code');
  expect(performance.now() - begunAt).toBe(0);
  await Promise.all(waiting);
});

test('where others have all places, it is the service that is full', async () => {
  const transfers = createTransfers(PLACES);
  const others = ['a', 'a', 'b', 'b', 'c', 'c'];
  const held = await Promise.all(others.map((one) => place(transfers.begin('upload', one))));
  expect(await transfers.begin('upload', 'acme')).toMatchObject(FULL);
  held[3]?.[Symbol.dispose]();
  await place(transfers.begin('upload', 'acme'));
});

test('the places follow from the memory and from what a put has of it', () => {
  const [MIB, GIB] = [1024 ** 2, 1024 ** 3];
  const large = { upload: 16, download: 256, extension: 4, command: 128 };
  expect(placesFor(32 * MIB, 2 * GIB)).toEqual(large);
  const small = { upload: 102, download: 128, extension: 4, command: 64 };
  expect(placesFor(2.5 * MIB, GIB)).toEqual(small);
  expect(placesFor(32 * MIB, 256 * MIB)).toMatchObject({ upload: 4, download: 32 });
  expect(placesFor(1, 64 * GIB).upload).toBe(256);
});
