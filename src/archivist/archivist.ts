import { newId } from '#src/ids.ts';
import { sleep } from '#src/async/sleep.ts';
import { LEASE_MS, type Leases } from '#src/messaging/leases.ts';
import type { Logger } from '#src/telemetry/logger.ts';
import { runArchive, type ArchiveRun, type ArchiveRunDependencies } from './archive-run.ts';

export type ArchivistDependencies = ArchiveRunDependencies & {
  leases: Leases;
  now: () => number;
};

export type ArchivistOptions = { retainEndedMs: number; everyMs: number; log: Logger };

/** The name of the lease: one archivist at a time. */
const LEASE = 'archivist';
/** A failed run is repeated after this long; the first run begins this long after the start. */
const RETRY_MS = 60_000;
/** The longest that one timer waits. */
const PAUSE_MAX_MS = 3_600_000;

/**
 * Archives at regular times, until it is disposed: a run when the last one is `everyMs` ago. Any
 * number of archivists may be started; one works at a time.
 */
export function startArchivist(
  dependencies: ArchivistDependencies,
  { retainEndedMs, everyMs, log }: ArchivistOptions,
): AsyncDisposable {
  const stop = new AbortController();
  const { signal } = stop;
  const { now } = dependencies;

  async function work(): Promise<void> {
    let dueAt = now() + Math.min(RETRY_MS, everyMs);
    for (;;) {
      while (now() < dueAt && !signal.aborted)
        await sleep(Math.min(dueAt - now(), PAUSE_MAX_MS), signal);
      if (signal.aborted) return;
      try {
        const run = await archiveOnce(dependencies, retainEndedMs, signal);
        if (run !== null && run.segments > 0) log.info(run, 'archived');
        if (run?.heldBack != null) log.warn({ heldBack: run.heldBack }, 'archived events stay');
        dueAt = now() + everyMs;
      } catch (error) {
        if (signal.aborted) return;
        log.error({ err: error }, 'archiving failed; it is tried again');
        dueAt = now() + Math.min(RETRY_MS, everyMs);
      }
    }
  }
  const working = work();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await working;
    },
  };
}

/**
 * One run with the lease; null: another process is archiving.
 * @throws what `runArchive` throws; Error if the lease is lost meanwhile
 */
export async function archiveOnce(
  dependencies: ArchivistDependencies,
  retainEndedMs: number,
  signal: AbortSignal,
): Promise<ArchiveRun | null> {
  const { leases, now } = dependencies;
  const holder = newId('arc');
  if (!(await leases.acquire(LEASE, holder))) return null;
  const done = new AbortController();
  const lost = new AbortController();
  const renewing = renew(leases, holder, done.signal, lost);
  try {
    const before = new Date(now() - retainEndedMs).toISOString();
    return await runArchive(dependencies, before, AbortSignal.any([signal, lost.signal]));
  } finally {
    done.abort();
    await renewing;
    if (!lost.signal.aborted) await leases.release(LEASE);
  }
}

/** Renews the lease until done; aborts `lost` if it cannot, or another process has it. */
async function renew(
  leases: Leases,
  holder: string,
  done: AbortSignal,
  lost: AbortController,
): Promise<void> {
  for (;;) {
    await sleep(LEASE_MS / 3, done);
    if (done.aborted) return;
    const isHeld = await leases.acquire(LEASE, holder).catch(() => false);
    if (isHeld) continue;
    lost.abort(new Error('the lease of the archivist was lost'));
    return;
  }
}
