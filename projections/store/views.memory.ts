import { assertBatch, assertPage } from './limits.ts';
import { put, type Store } from '../memory-store.ts';
import { createMemoryUpkeep } from '../memory-upkeep.ts';
import { createReached } from './wait-for-checkpoint.ts';
import type { Upkeep } from './maintenance.ts';
import type { Page, PageQuery, Views } from './views.ts';

/** Views in this process's memory, for tests and the memory composition. */
export function createMemoryViews(): Views & Upkeep {
  const stores = new Map<string, Store>();
  const waiting = createReached((projection) => Promise.resolve(storeOf(projection).checkpoint));

  function storeOf(projection: string): Store {
    const empty = { checkpoint: 0, logId: null, views: new Map(), lists: new Map() };
    const store = stores.get(projection) ?? empty;
    stores.set(projection, store);
    return store;
  }

  return {
    async checkpoint(projection) {
      return storeOf(projection).checkpoint;
    },
    async write(projection, batch) {
      assertBatch(batch);
      const { after, upTo, writes, isPart = false } = batch;
      const store = storeOf(projection);
      const stored = store.checkpoint;
      if (stored < after || stored >= upTo) return stored;
      for (const write of writes) {
        const heldSequence = store.views.get(write.key)?.sequence ?? 0;
        if (write.sequence > stored && write.sequence > heldSequence) put(store, write);
      }
      if (isPart) return stored;
      store.checkpoint = upTo;
      waiting.heard(projection, upTo);
      return upTo;
    },
    async isOf(projection, logId) {
      const store = storeOf(projection);
      store.logId ??= logId;
      return store.logId === logId;
    },
    ...createMemoryUpkeep(stores, storeOf, (projection, upTo) => waiting.heard(projection, upTo)),
    async read(projection, key) {
      return storeOf(projection).views.get(key)?.view ?? null;
    },
    async readMany(projection, keys) {
      const { views } = storeOf(projection);
      return keys.map((key) => views.get(key)?.view ?? null);
    },
    async page(projection, query) {
      assertPage(query);
      return pageOf(storeOf(projection), query);
    },
    async counts(projection, lists) {
      const store = storeOf(projection);
      return lists.map((list) => store.lists.get(list)?.size ?? 0);
    },
    async rank(projection, list, key) {
      const members = storeOf(projection).lists.get(list);
      if (members?.has(key) !== true) return null;
      return [...members].toSorted(byOrder).findIndex(([member]) => member === key);
    },
    reached: waiting.reached,
    isReachable() {
      return true;
    },
    async [Symbol.asyncDispose]() {
      waiting.close();
    },
  };
}

function pageOf(store: Store, { lists, offset, limit }: PageQuery): Page {
  const [first, ...others] = lists.map(
    (list) => store.lists.get(list) ?? new Map<string, number>(),
  );
  const members = [...(first ?? [])]
    .filter(([key]) => others.every((other) => other.has(key)))
    .toSorted(byOrder)
    .toReversed();
  const texts = members
    .slice(offset, offset + limit)
    .flatMap(([key]) => store.views.get(key)?.view ?? []);
  return { items: texts.join(','), total: members.length, checkpoint: store.checkpoint };
}

/** By order, then by key, as a Redis sorted set. */
function byOrder(a: [string, number], b: [string, number]): number {
  return a[1] - b[1] || (a[0] < b[0] ? -1 : 1);
}
