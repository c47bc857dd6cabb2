import { terminateBrowser } from './terminate.ts';
import type { Pool } from './pool.ts';
import type { PooledBrowser } from './roster.ts';

/** A full server has no room for a replacement; after this an idle browser ends without one. */
const FULL_MS = 5 * 60_000;

/**
 * Replaces idle browsers of an outdated build, one at a time: while there is one, the pool launches
 * one more than its target, and when that is idle, the outdated one that has been idle longest is
 * retired. Sessions keep their browsers. On a server that stays full an outdated browser is retired
 * first, and its replacement takes its room.
 * @returns the function that ends it
 */
export function replaceOutdated(pool: Pool, fullMs = FULL_MS): () => void {
  let timer: NodeJS.Timeout | null = null;

  function stopWaiting(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
  }
  function consider(): void {
    const outdated = pool.isOpen && pool.canLaunch ? longestOutdated(pool) : null;
    const isSpare = pool.roster.counts().idle > pool.size.target;
    const replacing = outdated !== null && !isSpare && !pool.isDraining ? 1 : 0;
    if (replacing !== pool.replacing) {
      pool.replacing = replacing;
      // The listeners launch the replacement; this one is called again, too.
      pool.changed();
      return;
    }
    if (outdated === null || !isFull(pool)) stopWaiting();
    if (outdated === null) return;
    if (isSpare) retire(outdated);
    else if (isFull(pool)) timer ??= setTimeout(retireOnFullServer, fullMs).unref();
  }
  function retireOnFullServer(): void {
    timer = null;
    const outdated = pool.isOpen && pool.canLaunch ? longestOutdated(pool) : null;
    if (outdated !== null && isFull(pool)) retire(outdated);
  }
  function retire(pooled: PooledBrowser): void {
    terminateBrowser(pool, pooled, 'retired').catch((error: unknown) =>
      pool.log.error({ err: error, workloadId: pooled.workloadId }, 'failed to retire a browser'),
    );
  }
  const forget = pool.onChange(consider);
  pool.browsers.onBuild?.(consider);
  consider();
  return () => {
    forget();
    stopWaiting();
  };
}

/** The outdated browser that has been idle longest. */
function longestOutdated({ roster, browsers }: Pool): PooledBrowser | null {
  const isOutdated = ({ workloadId }: PooledBrowser) => browsers.isOutdated?.(workloadId) === true;
  return roster.all().find((one) => one.phase === 'idle' && isOutdated(one)) ?? null;
}

/** Whether there is no room for one more browser, and none that is about to end. */
function isFull({ roster, limits, size }: Pool): boolean {
  const { launching, idle, busy, ending } = roster.counts();
  const hasNoRoom = size.limitedBy === 'memory' || launching + idle + busy >= limits.max;
  return ending === 0 && hasNoRoom;
}
