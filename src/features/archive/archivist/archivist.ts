import { sleep } from '#src/kernel/async/sleep.ts';
import type { Leases } from '#src/kernel/messaging/leases.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import {
  excessUpTo,
  runArchive,
  type ArchiveRun,
  type ArchiveRunDependencies,
  type Retention,
} from './archive-run.ts';
import { withLease } from '#src/kernel/messaging/with-lease.ts';

export type ArchivistDependencies = ArchiveRunDependencies & {
  leases: Leases;
  now: () => number;
};

/** What the event store keeps: events younger than one, and no more than the other. */
export type Kept = { retainEndedMs: number; retainEventsMax: number };

export type ArchivistOptions = Kept & { everyMs: number; log: Logger };

/** The name of the lease: one archivist at a time. */
const LEASE = 'archivist';
/** A failed run is repeated after this long; the first run begins this long after the start. */
const RETRY_MS = 60_000;
/** How often it is looked whether the event store has too many events. */
const LOOK_MS = 600_000;
/**
 * Events that are younger stay, however many there are: lists of the present reach back as far, and
 * a process or a consumer of an organization that was away for less has missed nothing.
 */
const EXCESS_AGE_MS = 24 * 3_600_000;
/** Less than this part of what the store may have is no reason for a run: each has its cost. */
const EXCESS_MIN = 0.1;

/**
 * Archives at regular times, until it is disposed: a run when the last one is `everyMs` ago, or the
 * event store has too many events. Any number of archivists may be started; one works at a time.
 */
export function startArchivist(
  dependencies: ArchivistDependencies,
  { everyMs, log, ...kept }: ArchivistOptions,
): AsyncDisposable {
  const stop = new AbortController();
  const { signal } = stop;
  const { context, now } = dependencies;

  async function hasTooMany(): Promise<boolean> {
    const { eventStore } = context;
    const { eventsMax, excessBefore } = retentionOf(kept, now());
    try {
      const { firstSequence } = await eventStore.info();
      const upTo = await excessUpTo(eventStore, { eventsMax, excessBefore });
      return upTo - firstSequence + 1 >= EXCESS_MIN * eventsMax;
    } catch {
      // An outage: the next look is not far.
      return false;
    }
  }
  /** Until a run is due, or, if that is looked at, the event store has too many events. */
  async function pause(dueAt: number, looks: boolean): Promise<void> {
    while (now() < dueAt && !signal.aborted) {
      await sleep(Math.min(dueAt - now(), LOOK_MS), signal);
      if (looks && !signal.aborted && (await hasTooMany())) return;
    }
  }
  async function work(): Promise<void> {
    let dueAt = now() + Math.min(RETRY_MS, everyMs);
    let purges = true;
    for (;;) {
      // What is held back stays in the store: runs between would purge nothing.
      await pause(dueAt, purges);
      if (signal.aborted) return;
      try {
        const run = await archiveOnce(dependencies, kept, signal);
        if (run !== null && run.segments > 0) log.info(run, 'archived');
        if (run?.heldBack != null) log.warn({ heldBack: run.heldBack }, 'archived events stay');
        purges = run === null || run.heldBack === null;
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
  kept: Kept,
  signal: AbortSignal,
): Promise<ArchiveRun | null> {
  const { leases, now } = dependencies;
  return withLease(leases, LEASE, signal, ({ signal: held }) =>
    runArchive(dependencies, retentionOf(kept, now()), held),
  );
}

function retentionOf({ retainEndedMs, retainEventsMax }: Kept, now: number): Retention {
  const ago = (ms: number) => new Date(now - ms).toISOString();
  return {
    before: ago(retainEndedMs),
    eventsMax: retainEventsMax,
    excessBefore: ago(EXCESS_AGE_MS),
  };
}
