import { setTimeout as delay } from 'node:timers/promises';
import { Unavailable } from '#src/errors.ts';
import type { ParkedEvents } from '#src/messaging/dead-letters.ts';
import { fateOf } from '../all-projections.ts';
import { createLagMeter, lagSecondsMax, type Lag, type LagMeter } from './lag.ts';
import {
  runProjection,
  type ParkedEvent,
  type ProjectedLog,
  type Progress,
  type ProjectorMode,
} from './run-projection.ts';
import { idOf, type Projection } from '../projection.ts';
import { steadyLog } from './retryable-source.ts';
import type { Upkeep } from '../store/maintenance.ts';
import type { Views } from '../store/views.ts';

/** The projections of this process while they run. */
export type Projecting = AsyncDisposable & {
  standings(): Standing[];
  /** Rejects where one of them ends by itself, which is a bug. */
  readonly running: Promise<void>;
};

/** How one projection stands, for metrics and health. */
export type Standing = {
  /** Its id, `session-view:v1`. */
  projection: string;
  mode: ProjectorMode;
  checkpoint: number;
  lag: Lag;
  /** Behind by more than ten seconds. */
  isLate: boolean;
};

export type RunAllOptions = {
  projections: readonly Projection<unknown>[];
  log: ProjectedLog;
  views: Views & Upkeep;
  parked: Pick<ParkedEvents, 'park' | 'list' | 'forget'>;
  onParked: (event: ParkedEvent, reason: string) => void;
  /** An old version's store, or what was left of a rebuild, is removed. */
  onRemoved: (store: string) => void;
  /** The log has answered what was not to be expected; it is asked again. */
  onLogFailure: (error: unknown) => void;
  now?: () => number;
};

/** How often the log's end is looked at; also how exact a lag's seconds are. */
const LOOK_EVERY_MS = 1_000;
/** Renewed at every look, so that some may be lost before the store counts as nobody's. */
const KEPT_FOR_MS = 10_000;
const SWEEP_EVERY_MS = 3_000;

type Run = { projection: Projection<unknown>; id: string; progress: Progress; meter: LagMeter };

/**
 * Folds all projections, says that their stores are in use, and removes those that no process uses:
 * an old version's, once the new one is up to date and no process keeps the old one folded, and
 * what a rebuild that was broken off has left.
 */
export function runProjections(given: RunAllOptions): Projecting {
  const options = { ...given, log: steadyLog(given.log, given.onLogFailure) };
  const { projections, now = Date.now, ...common } = options;
  const stop = new AbortController();
  const runs = projections.map((projection): Run => {
    const progress: Progress = { mode: 'starting', checkpoint: 0, seen: 0, folded: 0 };
    return { projection, id: idOf(projection), progress, meter: createLagMeter(now) };
  });
  const running = Promise.all(
    runs.map((run) =>
      runProjection({
        ...common,
        projection: run.projection,
        signal: stop.signal,
        onProgress(progress) {
          run.progress = progress;
          run.meter.reached(progress.checkpoint);
        },
      }),
    ),
  ).then(() => undefined);
  const looking = every(LOOK_EVERY_MS, stop.signal, () => look(runs, options));
  const sweeping = every(SWEEP_EVERY_MS, stop.signal, () => sweep(runs, options));

  return {
    running,
    standings: () =>
      runs.map(({ id, progress: { mode, checkpoint }, meter }) => {
        const lag = meter.lag();
        return { projection: id, mode, checkpoint, lag, isLate: lag.seconds > lagSecondsMax };
      }),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([running.catch(() => undefined), looking, sweeping]);
    },
  };
}

async function look(runs: readonly Run[], { log, views }: RunAllOptions): Promise<void> {
  await Promise.all(
    runs.map(async ({ projection, id, meter }) => {
      meter.sawEnd(await log.lastSequence(projection.subjects));
      await views.keep(id, KEPT_FOR_MS);
    }),
  );
}

async function sweep(
  runs: readonly Run[],
  { projections, views, parked, onRemoved }: RunAllOptions,
): Promise<void> {
  for (const { projection: store, isKept } of await views.stores()) {
    if (isKept) continue;
    const fate = fateOf(store, projections);
    const isReplaced = runs.some(
      ({ projection: { name }, progress: { mode } }) =>
        store.startsWith(`${name}:v`) && mode === 'live',
    );
    if (fate === 'left' || (fate === 'outdated' && !isReplaced)) continue;
    await views.drop(store);
    onRemoved(store);
    for (const event of await parked.list()) if (event.by === store) await parked.forget(event);
  }
}

/** Does it again and again, until the signal aborts; what is away is asked again the next time. */
async function every(ms: number, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
    // Rejects only when the signal aborts, which the loop sees for itself.
    await delay(ms, undefined, { signal }).catch(() => undefined);
  }
}
