import { expect, test } from 'vitest';
import { createBatches } from '#projections/runner/batches.ts';

const HOUR_MS = 3_600_000;

let waiting = 0;

/** A promise that counts who waits for it. */
class Counted<Result> extends Promise<Result> {
  // oxlint-disable-next-line unicorn/no-thenable
  override then<Kept = Result, Failed = never>(
    kept?: ((value: Result) => Kept | PromiseLike<Kept>) | null,
    failed?: ((reason: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Kept | Failed> {
    waiting += 1;
    return super.then(kept, failed);
  }
}

function startBatches() {
  const arrivals: PromiseWithResolvers<IteratorResult<never[], void>>[] = [];
  const iterator = {
    next() {
      const arrival = Counted.withResolvers<IteratorResult<never[], void>>();
      arrivals.push(arrival);
      return arrival.promise;
    },
  };
  const stop = new AbortController();
  return { batches: createBatches(iterator, stop.signal), arrivals, stop };
}

test('a wait ends with the batch, with a move, or with the time', async () => {
  const { batches, arrivals } = startBatches();
  batches.ask();
  expect(await batches.next(1)).toBe('idle');
  const moved = batches.nextOrMove(HOUR_MS);
  batches.moved();
  expect(await moved).toBe('moved');
  expect(await batches.nextOrMove(1)).toBe('idle');
  const batch = batches.next(HOUR_MS);
  batches.moved();
  arrivals[0]?.resolve({ done: false, value: [] });
  expect(await batch).toEqual({ done: false, value: [] });
  batches.ask();
  expect(await batches.next(1)).toBe('idle');
});

test('a failed subscription fails the wait, also one that begins later', async () => {
  const { batches, arrivals } = startBatches();
  batches.ask();
  const failing = batches.nextOrMove(HOUR_MS);
  arrivals[0]?.reject(new Error('lost'));
  await expect(failing).rejects.toThrow('lost');
  await expect(batches.next(HOUR_MS)).rejects.toThrow('lost');
});

test('waits without a batch leave nothing behind at the batch that is waited for', async () => {
  const { batches } = startBatches();
  batches.ask();
  const before = waiting;
  for (let round = 0; round < 100; round += 1) {
    const moved = batches.nextOrMove(HOUR_MS);
    batches.moved();
    expect(await moved).toBe('moved');
  }
  expect(waiting).toBe(before);
});
