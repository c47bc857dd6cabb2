import { assertBatch, assertPage, assertWrites } from './limits.ts';
import { createCheckpointWaiters } from './wait-for-checkpoint.ts';
import {
  keysMax,
  type StoredView,
  type OrphanEntry,
  type StoreMaintenance,
} from './maintenance.ts';
import type { HeldView, Page, PageQuery, Views, ViewWrite } from './views.ts';

type Stored = { sequence: number; view: string; lists: readonly string[]; order: number };
/** One projection's views. */
type Store = {
  checkpoint: number;
  logId: string | null;
  views: Map<string, Stored>;
  /** List → key → order. */
  lists: Map<string, Map<string, number>>;
};

/** Views in this process's memory, for tests. */
export function createMemoryViews(): Views & StoreMaintenance {
  const stores = new Map<string, Store>();
  const waiting = createCheckpointWaiters((projection) =>
    Promise.resolve(storeOf(projection).checkpoint),
  );

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
      waiting.notify(projection, upTo);
      return upTo;
    },
    async isBuiltFrom(projection, logId) {
      const store = storeOf(projection);
      store.logId ??= logId;
      return store.logId === logId;
    },
    ...createMemoryMaintenance(stores, storeOf, (projection, upTo) =>
      waiting.notify(projection, upTo),
    ),
    async read(projection, key) {
      return storeOf(projection).views.get(key)?.view ?? null;
    },
    readWithCheckpoint: async (projection, key) => heldViewOf(storeOf(projection), key),
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
    waitForCheckpoint: waiting.waitForCheckpoint,
    isReachable() {
      return true;
    },
    async [Symbol.asyncDispose]() {
      waiting.close();
    },
  };
}

/** Writes a view and updates its lists. */
function put(store: Store, { key, sequence, view, lists, order }: ViewWrite): void {
  for (const list of store.views.get(key)?.lists ?? []) store.lists.get(list)?.delete(key);
  if (view === null) {
    store.views.delete(key);
    return;
  }
  store.views.set(key, { sequence, view, lists, order });
  for (const list of lists) {
    const members = store.lists.get(list) ?? new Map<string, number>();
    store.lists.set(list, members.set(key, order));
  }
}

function heldViewOf({ views, checkpoint }: Store, key: string): HeldView {
  return { view: views.get(key)?.view ?? null, checkpoint };
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

/** By order, then by key: as a Redis sorted set. */
function byOrder(a: [string, number], b: [string, number]): number {
  return a[1] - b[1] || (a[0] < b[0] ? -1 : 1);
}

/** How long a store is in use, and the holder of its lock. */
type Registration = { inUseUntilMs: number; holder: string | null };

/** Maintenance and removal of stores in this process's memory. */
function createMemoryMaintenance(
  stores: Map<string, Store>,
  storeOf: (projection: string) => Store,
  onCheckpoint: (projection: string, checkpoint: number) => void,
): StoreMaintenance & { drop(projection: string): Promise<void> } {
  const registrations = new Map<string, Registration>();

  function register(projection: string, forMs: number, holder: string | null): void {
    const known = registrations.get(projection)?.inUseUntilMs ?? 0;
    registrations.set(projection, { inUseUntilMs: Math.max(known, Date.now() + forMs), holder });
  }

  return {
    async stores() {
      return [...registrations].map(([projection, { inUseUntilMs }]) => ({
        projection,
        checkpoint: stores.get(projection)?.checkpoint ?? 0,
        views: stores.get(projection)?.views.size ?? 0,
        isInUse: inUseUntilMs > Date.now(),
      }));
    },
    async renew(projection, forMs) {
      register(projection, forMs, null);
    },
    async acquire(projection, holder, forMs) {
      const known = registrations.get(projection);
      const isFree = (known?.inUseUntilMs ?? 0) <= Date.now() || known?.holder === holder;
      if (!isFree) return false;
      registrations.delete(projection);
      if (forMs > 0) register(projection, forMs, holder);
      return true;
    },
    async drop(projection) {
      stores.delete(projection);
      registrations.delete(projection);
    },
    async replace(projection, by, atLeast) {
      const next = storeOf(by);
      if (next.checkpoint < Math.max(storeOf(projection).checkpoint, atLeast)) return false;
      stores.set(projection, next);
      stores.delete(by);
      onCheckpoint(projection, next.checkpoint);
      return true;
    },
    async overwrite(projection, at, writes) {
      assertWrites(writes);
      const store = storeOf(projection);
      if (store.checkpoint !== at) return false;
      for (const write of writes) put(store, write);
      return true;
    },
    removeUpTo: async (projection, upTo) => removeViewsUpTo(storeOf(projection), upTo),
    async *keys(projection) {
      const keys = [...storeOf(projection).views.keys()];
      for (let from = 0; from < keys.length; from += keysMax)
        yield keys.slice(from, from + keysMax);
    },
    async sample(projection, count) {
      const keys = [...storeOf(projection).views.keys()];
      return keys.toSorted(() => Math.random() - 0.5).slice(0, count);
    },
    async inspect(projection, keys) {
      const store = storeOf(projection);
      return { checkpoint: store.checkpoint, views: keys.map((key) => storedViewOf(store, key)) };
    },
    async *orphans(projection) {
      const found = orphansOf(storeOf(projection));
      if (found.length > 0) yield found;
    },
  };
}

function removeViewsUpTo(store: Store, sequence: number): number {
  const gone = [...store.views].filter(([, stored]) => stored.sequence <= sequence);
  for (const [key, stored] of gone) put(store, { ...stored, key, view: null });
  return gone.length;
}

function storedViewOf({ views, lists }: Store, key: string): StoredView | null {
  const stored = views.get(key);
  if (stored === undefined) return null;
  const missingIn = stored.lists.filter((list) => lists.get(list)?.get(key) !== stored.order);
  return { ...stored, missingIn };
}

function orphansOf({ views, lists }: Store): OrphanEntry[] {
  return [...lists].flatMap(([list, members]) =>
    [...members.keys()]
      .filter((key) => views.get(key)?.lists.includes(list) !== true)
      .map((key) => ({ list, key })),
  );
}
