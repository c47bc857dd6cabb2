import { Unavailable } from '#src/kernel/errors.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { untilTickOf } from '#src/kernel/async/ticks.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import { retentionOf } from '../all-projections.ts';
import { createLagMeter, lagSecondsMax, type Lag, type LagMeter } from './lag.ts';
import { runProjection } from './run-projection.ts';
import type {
  ProjectionDeadLetter,
  ProjectionSource,
  Progress,
  ProjectorMode,
} from './projector.ts';
import { projectionId, type Projection } from '../projection.ts';
import { retryableSource } from './retryable-source.ts';
import type { StoreMaintenance } from '../store/maintenance.ts';
import type { Views } from '../store/views.ts';

/** The projections of this process while they run. */
export type ProjectionRunner = AsyncDisposable & {
  status(): ProjectionStatus[];
  /** Rejects if a projection fails by a bug; resolves after disposal. */
  readonly running: Promise<void>;
};

/** The status of one projection, for metrics and health. */
export type ProjectionStatus = {
  /** The projection's id, `session-view:v1`. */
  projection: string;
  mode: ProjectorMode;
  checkpoint: number;
  lag: Lag;
  /** Behind by more than ten seconds. */
  isLate: boolean;
};

export type StartProjectionsOptions = {
  projections: readonly Projection<unknown>[];
  eventStore: ProjectionSource;
  views: Views & StoreMaintenance;
  deadLetters: Pick<DeadLetterStore, 'add' | 'list' | 'resolve'>;
  onDeadLetter: (event: ProjectionDeadLetter, reason: string) => void;
  onUnknown: (projection: string, reason: string) => void;
  /** A store was removed: an old version's, or the leftover of a rebuild. */
  onRemoved: (store: string) => void;
  /** The event store gave an unexpected error; the call is retried. */
  onSourceFailure: (error: unknown) => void;
  now?: () => number;
};

/** How often the end of the event store is sampled; also the precision of a lag's seconds. */
const MEASURE_EVERY_MS = 4_000;
/** Renewed every 3 s: two renewals in a row may fail before a store counts as unused. */
const IN_USE_FOR_MS = 10_000;
const KEEP_EVERY_MS = 3_000;

type Run = { projection: Projection<unknown>; id: string; progress: Progress; meter: LagMeter };

/**
 * Runs all projections, marks their stores as in use, and removes unused stores: those of an old
 * version, once the current one is live and no process runs the old one, and the leftovers of
 * interrupted rebuilds.
 */
export function startProjections(given: StartProjectionsOptions): ProjectionRunner {
  const options = {
    ...given,
    eventStore: retryableSource(given.eventStore, given.onSourceFailure),
  };
  const { projections, now = Date.now, ...common } = options;
  const stop = new AbortController();
  const runs = projections.map((projection): Run => {
    const progress: Progress = { mode: 'starting', checkpoint: 0, seen: 0, folded: 0 };
    return { projection, id: projectionId(projection), progress, meter: createLagMeter(now) };
  });
  const running = Promise.all(
    runs.map((run) =>
      runProjection({
        ...common,
        projection: run.projection,
        signal: stop.signal,
        onProgress(progress) {
          run.progress = progress;
          run.meter.observeCheckpoint(progress.checkpoint);
        },
      }),
    ),
  ).then(() => undefined);
  const measuring = repeatEvery(MEASURE_EVERY_MS, stop.signal, () => measureLag(runs, options));
  const keeping = repeatEvery(KEEP_EVERY_MS, stop.signal, async () => {
    await Promise.all(runs.map(({ id }) => options.views.renew(id, IN_USE_FOR_MS)));
    await removeUnusedStores(runs, options);
  });

  return {
    running,
    status: () =>
      runs.map(({ id, progress: { mode, checkpoint }, meter }) => {
        const lag = meter.lag();
        return { projection: id, mode, checkpoint, lag, isLate: lag.seconds > lagSecondsMax };
      }),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([running.catch(() => undefined), measuring, keeping]);
    },
  };
}

async function measureLag(
  runs: readonly Run[],
  { eventStore }: StartProjectionsOptions,
): Promise<void> {
  const { lastSequence: end } = await eventStore.info();
  for (const { meter } of runs) meter.observeEnd(end);
}

async function removeUnusedStores(
  runs: readonly Run[],
  { projections, views, deadLetters, onRemoved }: StartProjectionsOptions,
): Promise<void> {
  for (const { projection: store, isInUse } of await views.stores()) {
    if (isInUse) continue;
    const retention = retentionOf(store, projections);
    const isReplaced = runs.some(
      ({ projection: { name }, progress: { mode } }) =>
        store.startsWith(`${name}:v`) && mode === 'live',
    );
    if (retention === 'kept' || (retention === 'outdated' && !isReplaced)) continue;
    await views.drop(store);
    onRemoved(store);
    for (const event of await deadLetters.list())
      if (event.by === store) await deadLetters.resolve(event);
  }
}

/** Repeats the work until the signal aborts. If a store is unavailable, the next round retries. */
async function repeatEvery(
  ms: number,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
    await sleep(untilTickOf(ms), signal);
  }
}
