import { Unavailable } from '#src/kernel/errors.ts';
import type { Views } from './views.ts';

/** How long a count or page waits for a store that has lost its data to catch up again. */
const CATCH_UP_WITHIN_MS = 1_000;

/**
 * The same views, but counts and pages never step back: if the store's checkpoint is below the
 * highest one that this process has read, the store counts as unavailable. After a FLUSHALL it
 * would otherwise answer with too few views until the projections have caught up.
 */
export function monotonicViews(views: Views): Views {
  const highest = new Map<string, number>();

  /** True if the checkpoint is not below the highest one seen so far. */
  function isCurrent(projection: string, checkpoint: number): boolean {
    const known = highest.get(projection) ?? 0;
    if (checkpoint > known) highest.set(projection, checkpoint);
    return checkpoint >= known;
  }

  /** Reads; if the store is behind, waits and reads again. @throws Unavailable('read-model') */
  async function readCurrent<T extends { checkpoint: number }>(
    projection: string,
    read: () => Promise<T>,
  ): Promise<T> {
    const first = await read();
    if (isCurrent(projection, first.checkpoint)) return first;
    const known = highest.get(projection) ?? 0;
    if (await views.waitForCheckpoint(projection, known, CATCH_UP_WITHIN_MS)) {
      const second = await read();
      if (isCurrent(projection, second.checkpoint)) return second;
    }
    throw new Unavailable(
      'read-model',
      new Error(`${projection} has lost data and is catching up`),
    );
  }

  return {
    checkpoint: (projection) => views.checkpoint(projection),
    write: (projection, batch) => views.write(projection, batch),
    isBuiltFrom: (projection, logId) => views.isBuiltFrom(projection, logId),
    drop: (projection) => views.drop(projection),
    read: (projection, key) => views.read(projection, key),
    readWithCheckpoint: (projection, key) => views.readWithCheckpoint(projection, key),
    readMany: (projection, keys) => views.readMany(projection, keys),
    page: (projection, query) => readCurrent(projection, () => views.page(projection, query)),
    async counts(projection, lists) {
      const { counts } = await readCurrent(projection, async () => {
        // One pipeline: if both checkpoints are current, so are the counts read between them.
        const [before, counted, after] = await Promise.all([
          views.checkpoint(projection),
          views.counts(projection, lists),
          views.checkpoint(projection),
        ]);
        return { counts: counted, checkpoint: Math.min(before, after) };
      });
      return counts;
    },
    rank: (projection, list, key) => views.rank(projection, list, key),
    waitForCheckpoint: (projection, sequence, timeoutMs) =>
      views.waitForCheckpoint(projection, sequence, timeoutMs),
    isReachable: () => views.isReachable(),
    [Symbol.asyncDispose]: () => views[Symbol.asyncDispose](),
  };
}
