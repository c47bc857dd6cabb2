import type { Redis } from 'ioredis';
import { Unavailable } from '#src/errors.ts';
import { assertWrites } from '../limits.ts';
import { keysOf, writeArguments, type ScriptCommands } from './scripts.ts';
import type { UpkeepCommands } from './maintenance-scripts.ts';
import {
  keysMax,
  type HeldView,
  type StoreFacts,
  type Stray,
  type Upkeep,
} from '../maintenance.ts';

/** The hash in which every store that is looked after has an entry. */
const REGISTRY = 'projections';
/** What a renamed store's name ends with, a number behind it. */
const OLD = ':old-';
/** What the name of a store ends with that is not a projection's own. */
const PARTIAL = /(:next|:old-\d+)+$/;
const FIRST = '0';

type Answer = <T>(command: Promise<T>) => Promise<T>;

/** The upkeep of stores in Redis, and their removal. */
export function createRedisUpkeep(
  redis: Redis & ScriptCommands & UpkeepCommands,
  answer: Answer,
): Upkeep & { drop(projection: string): Promise<void> } {
  /** Removes what nobody reads any more, in steps of some milliseconds; may be broken off. */
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
    async replace(projection, by) {
      const old = await answer(redis.replaceStore(1, REGISTRY, projection, by, OLD));
      if (old === null) return false;
      // It has taken place; what is left of the old one otherwise goes with the next sweep.
      await clear(old).catch(ignoreOutage);
      return true;
    },
    async keep(projection, forMs) {
      await answer(redis.keepStore(1, REGISTRY, projection, forMs));
    },
    async claim(projection, holder, forMs) {
      return (await answer(redis.claimStore(1, REGISTRY, projection, holder, forMs))) === 1;
    },
    async stores() {
      const found = await answer(redis.listStores(1, REGISTRY));
      return found.map(([projection, checkpoint, views, isKept]): StoreFacts => ({
        projection,
        checkpoint: Number(checkpoint),
        views,
        isKept: isKept === 1,
      }));
    },
    async mend(projection, at, writes) {
      assertWrites(writes);
      const { keys, rest } = writeArguments(projection, { after: at, upTo: at, writes }, true);
      return (await answer(redis.writeViews(keys.length, ...keys, ...rest))) === at;
    },
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
    async held(projection, keys) {
      if (keys.length > keysMax) throw new RangeError(`${keys.length} keys in one call`);
      const [checkpoint, ...parts] = await answer(redis.readHeld(1, projection, ...keys));
      return { checkpoint: Number(checkpoint), views: parts.map(heldOf) };
    },
    async *strays(projection) {
      let cursor = FIRST;
      do {
        const [next, lists] = await answer(redis.scanLists(1, projection, cursor, keysMax));
        cursor = next;
        for (const list of lists) yield* straysIn(redis, answer, projection, list);
      } while (cursor !== FIRST);
    },
  };
}

function ignoreOutage(error: unknown): void {
  if (!(error instanceof Unavailable)) throw error;
}

async function* straysIn(
  redis: UpkeepCommands,
  answer: Answer,
  projection: string,
  list: string,
): AsyncGenerator<Stray[], void, void> {
  let cursor = FIRST;
  do {
    const [next, keys] = await answer(redis.scanStrays(1, projection, list, cursor, keysMax));
    cursor = next;
    if (keys.length > 0) yield keys.map((key) => ({ list, key }));
  } while (cursor !== FIRST);
}

function heldOf([view, sequence, place, missingIn]: Awaited<
  ReturnType<UpkeepCommands['readHeld']>
>[1]): HeldView | null {
  if (view === null && sequence === null && place === null) return null;
  const { lists, order } =
    place === null
      ? { lists: [], order: 0 }
      : (JSON.parse(place) as Pick<HeldView, 'lists' | 'order'>);
  return { view, sequence: Number(sequence ?? 0), lists, order, missingIn };
}
