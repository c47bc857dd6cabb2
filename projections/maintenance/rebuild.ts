import { setTimeout as delay } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { Unavailable } from '#src/errors.ts';
import type { ParkedEvents } from '#src/messaging/dead-letters.ts';
import { nextOf } from '../all-projections.ts';
import {
  runProjection,
  type ParkedEvent,
  type ProjectedLog,
  type Progress,
} from '../runner/run-projection.ts';
import { idOf, type Projection } from '../projection.ts';
import type { Upkeep } from '../store/maintenance.ts';
import type { Views } from '../store/views.ts';

export type RebuildOptions<View> = {
  projection: Projection<View>;
  log: ProjectedLog;
  views: Views & Upkeep;
  parked: ParkedEvents;
  signal: AbortSignal;
  onProgress?: (progress: RebuildProgress) => void;
};

export type RebuildProgress = {
  /** Sequence that the new views are folded up to, and the log's end for them. */
  checkpoint: number;
  target: number;
  /** Events folded since the begin. */
  folded: number;
  isWaiting: boolean;
};

/** null: somebody else is rebuilding it. `parked`: events that no view could be made of. */
export type Rebuilt = { folded: number; seconds: number; parked: number } | null;

/** Renewed in a third of it; a rebuild that died is out of the way after so long. */
const CLAIM_MS = 10_000;
/** Between two tries to take the old views' place; each needs an event or none in between. */
const SWITCH_EVERY_MS = 5;

/**
 * Folds the whole log into a store beside the one in use; once it has caught up it takes that one's
 * place in one step, and the old one is removed. Readers see the old views until then, and the
 * projectors go on with the new ones. Two stores are held meanwhile.
 * @throws Unavailable('read-model') where the store is away at the begin; later it is waited for
 * @throws the signal's reason
 */
export async function rebuild<View>(options: RebuildOptions<View>): Promise<Rebuilt> {
  const { projection, views, signal } = options;
  const next = nextOf(idOf(projection));
  const holder = randomUUID();
  if (!(await views.claim(next, holder, CLAIM_MS))) return null;
  const stop = new AbortController();
  const taken = new AbortController();
  const claiming = keepClaim(views, next, holder, { stop: stop.signal, taken });
  const ending = AbortSignal.any([signal, taken.signal]);
  try {
    // What a rebuild that died has left is not gone on with: other code may have folded it.
    await views.drop(next);
    return await foldAndSwitch({ ...options, signal: ending }, next);
  } catch (error) {
    signal.throwIfAborted();
    if (taken.signal.aborted) return null;
    throw error;
  } finally {
    stop.abort();
    await claiming;
    if (!taken.signal.aborted) await views.drop(next).catch(ignoreOutage);
    await views.claim(next, holder, 0).catch(ignoreOutage);
  }
}

async function foldAndSwitch<View>(
  { projection, log, views, parked, signal, onProgress }: RebuildOptions<View>,
  next: string,
): Promise<Rebuilt> {
  const id = idOf(projection);
  const startedAt = performance.now();
  const target = await log.lastSequence(projection.subjects);
  const passedOver = new Set<number>();
  const known = new Set<number>();
  for (const event of await parked.list()) if (event.by === id) known.add(event.sequence);
  const state: { progress: Progress | null } = { progress: null };
  const folding = new AbortController();
  const running = runProjection({
    projection,
    store: next,
    // What is parked by now is tried again, each of them.
    ...(projection.readsView ? {} : { alone: { mayLeaveOut: (sequence) => !known.has(sequence) } }),
    log,
    views,
    parked,
    signal: AbortSignal.any([signal, folding.signal]),
    onParked: ({ sequence }: ParkedEvent) => passedOver.add(sequence),
    onProgress(progress) {
      state.progress = progress;
      const { checkpoint, folded, mode } = progress;
      const isWaiting = mode === 'waiting-for-store' || mode === 'waiting-for-log';
      onProgress?.({ checkpoint, folded, target: Math.max(target, checkpoint), isWaiting });
    },
  });
  try {
    while (!(await hasTakenOver(views, id, next, state.progress)))
      await Promise.race([running, delay(SWITCH_EVERY_MS, undefined, { signal })]);
  } finally {
    folding.abort();
    await running;
  }
  for (const sequence of known)
    if (!passedOver.has(sequence)) await parked.forget({ by: id, sequence });
  const seconds = (performance.now() - startedAt) / 1000;
  return { folded: state.progress?.folded ?? 0, seconds, parked: passedOver.size };
}

async function hasTakenOver(
  views: Upkeep,
  id: string,
  next: string,
  progress: Progress | null,
): Promise<boolean> {
  if (progress?.mode !== 'live') return false;
  try {
    return await views.replace(id, next);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    return false;
  }
}

/** Aborts `taken` where another holds it by now: this process was held up for too long. */
async function keepClaim(
  views: Upkeep,
  next: string,
  holder: string,
  { stop, taken }: { stop: AbortSignal; taken: AbortController },
): Promise<void> {
  while (!stop.aborted && !taken.signal.aborted) {
    await delay(CLAIM_MS / 3, undefined, { signal: stop }).catch(() => undefined);
    if (stop.aborted) return;
    const isHeld = await views.claim(next, holder, CLAIM_MS).catch(ignoreOutage);
    if (isHeld === false) taken.abort();
  }
}

function ignoreOutage(error: unknown): void {
  if (!(error instanceof Unavailable)) throw error;
}
