import { sleep } from '#src/kernel/async/sleep.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { Pool } from './pool.ts';
import { handleExit } from './terminate.ts';

/** Between two rounds; a page writes some 100 MB a second. */
const EVERY_MS = 5_000;
/** Rounds take a tenth of the time at most, however many browsers there are. */
const REST = 9;
const LOOK_MS = 10_000;

/**
 * Watches what browsers with a session store on the server's disk, or in its memory: a page may
 * fill it. One that has more than `maxBytes` is ended, and its session fails with
 * `out_of_memory` and the numbers in the detail. Where the adapter does not tell, the system bounds
 * it.
 */
export function watchStorage(pool: Pool, maxBytes: number): Disposable {
  const stop = new AbortController();
  const { signal } = stop;

  async function look(workloadId: string): Promise<void> {
    try {
      const told = pool.browsers.storedBytes?.(workloadId) ?? Promise.resolve(null);
      const bytes = await within(LOOK_MS, told, () => null);
      if (bytes === null || bytes <= maxBytes || signal.aborted) return;
      const detail = `the browser stored ${bytes} bytes in its profile, more than ${maxBytes}`;
      const exit = { exitCode: null, endedAt: pool.now(), detail };
      await handleExit(pool, { workloadId, reason: 'storage_exceeded', ...exit });
    } catch (error) {
      pool.log.warn({ err: error, workloadId }, 'what a browser stores is not known');
    }
  }
  async function watch(): Promise<void> {
    let pauseMs = EVERY_MS;
    for (;;) {
      await sleep(pauseMs, signal);
      if (signal.aborted) return;
      const begunAt = performance.now();
      for (const { workloadId, phase } of pool.roster.all())
        if (phase === 'busy' && !signal.aborted) await look(workloadId);
      pauseMs = Math.max(EVERY_MS, REST * (performance.now() - begunAt));
    }
  }
  if (pool.browsers.storedBytes !== undefined) void watch();
  return { [Symbol.dispose]: () => stop.abort() };
}
