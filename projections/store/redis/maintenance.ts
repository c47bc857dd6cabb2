import type { Redis } from 'ioredis';
import { Unavailable } from '#src/kernel/errors.ts';
import { assertWrites } from '../limits.ts';
import { keysOf, writeArguments, type ScriptCommands } from './scripts.ts';
import type { MaintenanceCommands } from './maintenance-scripts.ts';
import {
  keysMax,
  removedMax,
  type StoredView,
  type StoreStatus,
  type OrphanEntry,
  type StoreMaintenance,
} from '../maintenance.ts';

/** The hash with an entry for every store: until when it is in use. */
const REGISTRY = 'projections';
/** Suffix of a replaced store's name, followed by a number. */
const OLD = ':old-';
/** Suffixes of stores that are not a projection's own: of rebuilds and of replaced stores. */
const PARTIAL = /(:next|:old-\d+)+$/;
const FIRST = '0';

type Answer = <T>(command: Promise<T>) => Promise<T>;

/** Maintenance and removal of stores in Redis. */
export function createRedisMaintenance(
  redis: Redis & ScriptCommands & MaintenanceCommands,
  answer: Answer,
): StoreMaintenance & { drop(projection: string): Promise<void> } {
  /** Removes a store that has no readers, in steps of some milliseconds. Can be interrupted. */
  async function clear(store: string): Promise<void> {
    let cursor = FIRST;
    do cursor = await answer(redis.unlinkLists(1, store, cursor, keysMax));
    while (cursor !== FIRST);
    await answer(redis.unlinkStore(1, REGISTRY, store));
  }

  return {
    async drop(projection) {
      const base = projection.replace(PARTIAL, '');
      const old = await answer(redis.setAside(1, REGISTRY, projection, OLD, base));
      if (old !== null) await clear(old);
    },
    async replace(projection, by, atLeast) {
      const old = await answer(redis.replaceStore(1, REGISTRY, projection, by, OLD, atLeast));
      if (old === null) return false;
      // The replacement is done. If this fails, a projector removes the old store later.
      await clear(old).catch(ignoreOutage);
      return true;
    },
    async renew(projection, forMs) {
      await answer(redis.renewStore(1, REGISTRY, projection, forMs));
    },
    async acquire(projection, holder, forMs) {
      return (await answer(redis.acquireStore(1, REGISTRY, projection, holder, forMs))) === 1;
    },
    async stores() {
      const found = await answer(redis.listStores(1, REGISTRY));
      return found.map(([projection, checkpoint, views, isInUse]): StoreStatus => ({
        projection,
        checkpoint: Number(checkpoint),
        views,
        isInUse: isInUse === 1,
      }));
    },
    async overwrite(projection, at, writes) {
      assertWrites(writes);
      const { keys, rest } = writeArguments(projection, { after: at, upTo: at, writes }, true);
      return (await answer(redis.writeViews(keys.length, ...keys, ...rest))) === at;
    },
    removeUpTo: (projection, sequence) => removeUpTo(redis, answer, projection, sequence),
    async *keys(projection) {
      let cursor = FIRST;
      do {
        const [next, found] = await answer(redis.scanKeys(1, projection, cursor, keysMax));
        cursor = next;
        if (found.length > 0) yield found;
      } while (cursor !== FIRST);
    },
    async sample(projection, count) {
      return answer(redis.hrandfield(keysOf(projection).views, count) as Promise<string[]>);
    },
    async inspect(projection, keys) {
      if (keys.length > keysMax) throw new RangeError(`${keys.length} keys in one call`);
      const [checkpoint, ...parts] = await answer(redis.inspectViews(1, projection, ...keys));
      return { checkpoint: Number(checkpoint), views: parts.map(storedViewOf) };
    },
    async *orphans(projection) {
      let cursor = FIRST;
      do {
        const [next, lists] = await answer(redis.scanLists(1, projection, cursor, keysMax));
        cursor = next;
        for (const list of lists) yield* orphansIn(redis, answer, projection, list);
      } while (cursor !== FIRST);
    },
  };
}

async function removeUpTo(
  redis: MaintenanceCommands,
  answer: Answer,
  projection: string,
  sequence: number,
): Promise<number> {
  let cursor = FIRST;
  let removed = 0;
  do {
    const step = redis.removeViews(1, projection, cursor, removedMax, sequence);
    const [next, gone] = await answer(step);
    cursor = next;
    removed += gone;
  } while (cursor !== FIRST);
  return removed;
}

function ignoreOutage(error: unknown): void {
  if (!(error instanceof Unavailable)) throw error;
}

async function* orphansIn(
  redis: MaintenanceCommands,
  answer: Answer,
  projection: string,
  list: string,
): AsyncGenerator<OrphanEntry[], void, void> {
  let cursor = FIRST;
  do {
    const [next, keys] = await answer(redis.scanOrphans(1, projection, list, cursor, keysMax));
    cursor = next;
    if (keys.length > 0) yield keys.map((key) => ({ list, key }));
  } while (cursor !== FIRST);
}

function storedViewOf([view, sequence, place, missingIn]: Awaited<
  ReturnType<MaintenanceCommands['inspectViews']>
>[1]): StoredView | null {
  if (view === null && sequence === null && place === null) return null;
  const { lists, order } =
    place === null
      ? { lists: [], order: 0 }
      : (JSON.parse(place) as Pick<StoredView, 'lists' | 'order'>);
  return { view, sequence: Number(sequence ?? 0), lists, order, missingIn };
}
