import { randomUUID } from 'node:crypto';
import { Unavailable } from '#src/kernel/errors.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import { rebuildStoreOf } from '../all-projections.ts';
import { runProjection } from '../runner/run-projection.ts';
import type { ProjectionDeadLetter, ProjectionSource, Progress } from '../runner/projector.ts';
import { projectionId, type Projection } from '../projection.ts';
import type { StoreMaintenance } from '../store/maintenance.ts';
import type { Views } from '../store/views.ts';

export type RebuildOptions<View> = {
  projection: Projection<View>;
  eventStore: ProjectionSource;
  views: Views & StoreMaintenance;
  deadLetters: DeadLetterStore;
  signal: AbortSignal;
  onProgress?: (progress: RebuildProgress) => void;
};

export type RebuildProgress = {
  /** Sequence that the new views are folded up to, and the last sequence to fold. */
  checkpoint: number;
  target: number;
  /** Events folded so far. */
  folded: number;
  isWaiting: boolean;
};

/** null: another process is rebuilding it. `deadLettered`: events that could not be folded. */
export type RebuildResult = { folded: number; seconds: number; deadLettered: number } | null;

/** Renewed every third of this time. The lock of a rebuild that died expires after it. */
const LOCK_MS = 10_000;
/** Between two attempts to replace the old store. An attempt fails if the new one is behind. */
const SWITCH_EVERY_MS = 5;

/**
 * Folds all events into a new store beside the one in use. Once the new store has caught up, it
 * replaces the old one in one step and the old one is removed. Readers see the old views until
 * then; projectors continue with the new ones. Both stores exist meanwhile.
 * @throws Unavailable('read-model') if the store is unavailable at the start; later it is retried.
 * @throws the signal's reason
 */
export async function rebuild<View>(options: RebuildOptions<View>): Promise<RebuildResult> {
  const { projection, views, signal } = options;
  const next = rebuildStoreOf(projectionId(projection));
  const holder = randomUUID();
  if (!(await views.acquire(next, holder, LOCK_MS))) return null;
  const stop = new AbortController();
  const lost = new AbortController();
  const renewing = renewLock(views, next, holder, { stop: stop.signal, lost });
  const ending = AbortSignal.any([signal, lost.signal]);
  try {
    // Views left by a rebuild that died are not reused: another version may have folded them.
    await views.drop(next);
    return await foldAndSwitch({ ...options, signal: ending }, next);
  } catch (error) {
    signal.throwIfAborted();
    if (lost.signal.aborted) return null;
    throw error;
  } finally {
    stop.abort();
    await renewing;
    if (!lost.signal.aborted) await views.drop(next).catch(ignoreOutage);
    await views.acquire(next, holder, 0).catch(ignoreOutage);
  }
}

async function foldAndSwitch<View>(
  { projection, eventStore, views, deadLetters, signal, onProgress }: RebuildOptions<View>,
  next: string,
): Promise<RebuildResult> {
  const id = projectionId(projection);
  const startedAt = performance.now();
  const target = await eventStore.lastSequence();
  const skipped = new Set<number>();
  const known = new Set<number>();
  for (const event of await deadLetters.list()) if (event.by === id) known.add(event.sequence);
  const state: { progress: Progress | null } = { progress: null };
  const folding = new AbortController();
  const running = runProjection({
    projection,
    store: next,
    // Known dead letters are never left out: each is tried again.
    exclusive: { canSkip: (sequence) => !known.has(sequence) },
    eventStore,
    views,
    deadLetters,
    signal: AbortSignal.any([signal, folding.signal]),
    onDeadLetter: ({ sequence }: ProjectionDeadLetter) => skipped.add(sequence),
    onProgress(progress) {
      state.progress = progress;
      const { checkpoint, folded, mode } = progress;
      const isWaiting = mode === 'waiting-for-store' || mode === 'waiting-for-log';
      onProgress?.({ checkpoint, folded, target: Math.max(target, checkpoint), isWaiting });
    },
  });
  try {
    while (!(await hasTakenOver(views, id, next, state.progress))) {
      await within(SWITCH_EVERY_MS, running, () => undefined);
      signal.throwIfAborted();
    }
  } finally {
    folding.abort();
    await running;
  }
  for (const sequence of known)
    if (!skipped.has(sequence)) await deadLetters.resolve({ by: id, sequence });
  const seconds = (performance.now() - startedAt) / 1000;
  return { folded: state.progress?.folded ?? 0, seconds, deadLettered: skipped.size };
}

async function hasTakenOver(
  views: StoreMaintenance,
  id: string,
  next: string,
  progress: Progress | null,
): Promise<boolean> {
  if (progress?.mode !== 'live') return false;
  try {
    return await views.replace(id, next, progress.checkpoint);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    return false;
  }
}

/** Renews the lock until `stop`; aborts `lost` if another process has acquired it. */
async function renewLock(
  views: StoreMaintenance,
  next: string,
  holder: string,
  { stop, lost }: { stop: AbortSignal; lost: AbortController },
): Promise<void> {
  while (!stop.aborted && !lost.signal.aborted) {
    await sleep(LOCK_MS / 3, stop);
    if (stop.aborted) return;
    const isHeld = await views.acquire(next, holder, LOCK_MS).catch(ignoreOutage);
    if (isHeld === false) lost.abort();
  }
}

function ignoreOutage(error: unknown): void {
  if (!(error instanceof Unavailable)) throw error;
}
