import { assertWrites } from './store/limits.ts';
import { put, type Store } from './memory-store.ts';
import { keysMax, type HeldView, type Stray, type Upkeep } from './store/maintenance.ts';

type Promised = { keptUntilMs: number; holder: string | null };

/** The upkeep of stores in this process's memory, and their removal. */
export function createMemoryUpkeep(
  stores: Map<string, Store>,
  storeOf: (projection: string) => Store,
  onCheckpoint: (projection: string, checkpoint: number) => void,
): Upkeep & { drop(projection: string): Promise<void> } {
  const promises = new Map<string, Promised>();

  function promise(projection: string, forMs: number, holder: string | null): void {
    const known = promises.get(projection)?.keptUntilMs ?? 0;
    promises.set(projection, { keptUntilMs: Math.max(known, Date.now() + forMs), holder });
  }

  return {
    async stores() {
      return [...promises].map(([projection, { keptUntilMs }]) => ({
        projection,
        checkpoint: stores.get(projection)?.checkpoint ?? 0,
        views: stores.get(projection)?.views.size ?? 0,
        isKept: keptUntilMs > Date.now(),
      }));
    },
    async keep(projection, forMs) {
      promise(projection, forMs, null);
    },
    async claim(projection, holder, forMs) {
      const known = promises.get(projection);
      const isFree = (known?.keptUntilMs ?? 0) <= Date.now() || known?.holder === holder;
      if (!isFree) return false;
      promises.delete(projection);
      if (forMs > 0) promise(projection, forMs, holder);
      return true;
    },
    async drop(projection) {
      stores.delete(projection);
      promises.delete(projection);
    },
    async replace(projection, by) {
      const next = storeOf(by);
      if (next.checkpoint < storeOf(projection).checkpoint) return false;
      stores.set(projection, next);
      stores.delete(by);
      onCheckpoint(projection, next.checkpoint);
      return true;
    },
    async mend(projection, at, writes) {
      assertWrites(writes);
      const store = storeOf(projection);
      if (store.checkpoint !== at) return false;
      for (const write of writes) put(store, write);
      return true;
    },
    async *keys(projection) {
      const keys = [...storeOf(projection).views.keys()];
      for (let from = 0; from < keys.length; from += keysMax)
        yield keys.slice(from, from + keysMax);
    },
    async sample(projection, count) {
      const keys = [...storeOf(projection).views.keys()];
      return keys.toSorted(() => Math.random() - 0.5).slice(0, count);
    },
    async held(projection, keys) {
      const store = storeOf(projection);
      return { checkpoint: store.checkpoint, views: keys.map((key) => heldOf(store, key)) };
    },
    async *strays(projection) {
      const found = straysOf(storeOf(projection));
      if (found.length > 0) yield found;
    },
  };
}

function heldOf({ views, lists }: Store, key: string): HeldView | null {
  const stored = views.get(key);
  if (stored === undefined) return null;
  const missingIn = stored.lists.filter((list) => lists.get(list)?.get(key) !== stored.order);
  return { ...stored, missingIn };
}

function straysOf({ views, lists }: Store): Stray[] {
  return [...lists].flatMap(([list, members]) =>
    [...members.keys()]
      .filter((key) => views.get(key)?.lists.includes(list) !== true)
      .map((key) => ({ list, key })),
  );
}
