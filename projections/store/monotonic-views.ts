import { Unavailable } from '#src/errors.ts';
import type { Views } from './views.ts';

/** How long a count or page waits for a store that has lost what it held to hold it again. */
const AGAIN_WITHIN_MS = 1_000;

/**
 * The same views, of which counts and pages never step back: what the store has once been at in
 * this process it must be at again, or it counts as away. After a FLUSHALL it would else tell of
 * fewer and fewer things than there are, until the projections have caught up.
 */
export function steadyViews(views: Views): Views {
  const highest = new Map<string, number>();

  /** True where the checkpoint is not below one that was seen before. */
  function isSteady(projection: string, checkpoint: number): boolean {
    const known = highest.get(projection) ?? 0;
    if (checkpoint > known) highest.set(projection, checkpoint);
    return checkpoint >= known;
  }

  /** Asks once more when the store is where it was. @throws Unavailable('read-model') */
  async function steadily<T extends { checkpoint: number }>(
    projection: string,
    ask: () => Promise<T>,
  ): Promise<T> {
    const first = await ask();
    if (isSteady(projection, first.checkpoint)) return first;
    const known = highest.get(projection) ?? 0;
    if (await views.reached(projection, known, AGAIN_WITHIN_MS)) {
      const second = await ask();
      if (isSteady(projection, second.checkpoint)) return second;
    }
    throw new Unavailable('read-model', new Error(`${projection} is being folded again`));
  }

  return {
    checkpoint: (projection) => views.checkpoint(projection),
    write: (projection, batch) => views.write(projection, batch),
    isOf: (projection, logId) => views.isOf(projection, logId),
    drop: (projection) => views.drop(projection),
    read: (projection, key) => views.read(projection, key),
    readMany: (projection, keys) => views.readMany(projection, keys),
    page: (projection, query) => steadily(projection, () => views.page(projection, query)),
    async counts(projection, lists) {
      const { counts } = await steadily(projection, async () => {
        // One pipeline: what was at its checkpoint before and after was there in between.
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
    reached: (projection, sequence, timeoutMs) => views.reached(projection, sequence, timeoutMs),
    isReachable: () => views.isReachable(),
    [Symbol.asyncDispose]: () => views[Symbol.asyncDispose](),
  };
}
