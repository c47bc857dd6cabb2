import { expect, test } from 'vitest';
import { monotonicViews } from '#projections/store/monotonic-views.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Views } from '#projections/store/views.ts';
import { Unavailable } from '#src/kernel/errors.ts';

const P = 'sessions:v1';
const everyone = { lists: ['all'], offset: 0, limit: 10 };

/** A store that can lose everything, as one of the process's readers sees it. */
function openForgetful() {
  let store = createMemoryViews();
  const current: Views = new Proxy(store, {
    get: (_, name) => Reflect.get(store, name) as unknown,
  });
  return {
    views: monotonicViews(current),
    forget: () => (store = createMemoryViews()),
    /** Folds the log's events 1 to `upTo`, each of which makes a view. */
    fold: (after: number, upTo: number) =>
      store.write(P, {
        after,
        upTo,
        writes: Array.from({ length: upTo - after }, (_, at) => ({
          key: `k${after + at + 1}`,
          sequence: after + at + 1,
          view: `${after + at + 1}`,
          lists: ['all'],
          order: after + at + 1,
        })),
      }),
  };
}

test('counts and pages are the store’s while its checkpoint grows', async () => {
  const { views, fold } = openForgetful();
  expect(await views.counts(P, ['all'])).toEqual([0]);
  await fold(0, 3);
  expect(await views.counts(P, ['all', 'none'])).toEqual([3, 0]);
  expect(await views.page(P, everyone)).toEqual({ items: '3,2,1', total: 3, checkpoint: 3 });
});

test('a store that lost its data counts as unavailable until it has caught up', async () => {
  const { views, forget, fold } = openForgetful();
  await fold(0, 3);
  await views.counts(P, ['all']);
  forget();
  await expect(views.counts(P, ['all'])).rejects.toThrow(Unavailable);
  await fold(0, 2);
  await expect(views.page(P, everyone)).rejects.toThrow(Unavailable);
  await fold(2, 3);
  expect(await views.counts(P, ['all'])).toEqual([3]);
});

test('a read during the catch-up waits for its end', async () => {
  const { views, forget, fold } = openForgetful();
  await fold(0, 3);
  await views.counts(P, ['all']);
  forget();
  const asked = views.counts(P, ['all']);
  await fold(0, 3);
  expect(await asked).toEqual([3]);
});

test('the first read of a projection is accepted at any checkpoint', async () => {
  const { views, forget, fold } = openForgetful();
  await fold(0, 3);
  forget();
  expect(await views.counts(P, ['all'])).toEqual([0]);
});
