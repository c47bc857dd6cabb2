import type { ServerEvent } from '#events/server.ts';
import type { Views } from '#projections/store/views.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { createNotifier } from '#src/kernel/async/notifier.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { observe } from './observe.ts';
import { applyStep } from './apply.ts';
import { differenceOf, leaksOf, planSteps, type Step } from './plan.ts';
import type { Pool } from '../pool/pool.ts';

/**
 * Interval of reconciliation; events between two of them are hints, the observation is the truth.
 */
const EVERY_MS = 60_000;
/**
 * A difference is confirmed once two observations, this far apart, have both found it: what happens
 * here is in the log a moment later, and a browser's end takes up to a second.
 */
const CONFIRM_MS = 3_000;
/** Pause after an observation that failed: the log or the read model is unavailable. */
const RETRY_MS = 500;
/** Rounds of applying steps and observing again; what is left after the last counts as a leak. */
const PASSES_MAX = 3;

export type Reconciled = Extract<ServerEvent, { type: 'server.reconciled' }>['data'];
type ReconcileDependencies = {
  context: CommandContext;
  views: Views;
  pool: Pool;
  signal: AbortSignal;
};
/** Selects the differences of an observation that are to be corrected. */
type Confirm = (found: Step[]) => Step[];

export type Reconciler = {
  /** Reconciles now; for a caller that may have missed events of the host or of the log. */
  soon: () => void;
  /** What the last reconciliation corrected and left. */
  last(): Reconciled;
  /** Resolves when the signal has aborted. */
  ended: Promise<void>;
};

/**
 * Reconciles this server with the log: once before it resolves, then every minute and at each call
 * of `soon`. A difference is corrected once a second observation, `CONFIRM_MS` later, finds it too.
 * The first reconciliation corrects at once, since this process has no work under way yet.
 * @param onDone called with the result of each reconciliation but the first
 */
export async function reconcileEvery(
  dependencies: ReconcileDependencies,
  onDone: (reconciled: Reconciled) => Promise<void>,
): Promise<Reconciler> {
  const { signal, pool } = dependencies;
  const notifier = createNotifier();
  const differences = createDifferenceTracker();
  let last = await reconcileUntilDone(dependencies, (found) => {
    differences.note(found);
    return found;
  });
  let isRequested = false;
  async function run(): Promise<void> {
    while (!signal.aborted) {
      if (!isRequested)
        await notifier.wait(signal, differences.haveUnconfirmed() ? CONFIRM_MS : EVERY_MS);
      isRequested = false;
      if (signal.aborted || !pool.isOpen) continue;
      last = await reconcileUntilDone(dependencies, (found) => differences.note(found));
      await onDone(last).catch((error: unknown) =>
        pool.log.warn({ err: error }, 'failed to report a reconciliation'),
      );
    }
  }
  function soon(): void {
    isRequested = true;
    notifier.notify();
  }
  return { soon, last: () => last, ended: run() };
}

/** Retries until the log and the read model are available; an empty result if the signal aborts. */
async function reconcileUntilDone(
  dependencies: ReconcileDependencies,
  confirm: Confirm,
): Promise<Reconciled> {
  const { signal, pool } = dependencies;
  while (!signal.aborted) {
    try {
      return await reconcileOnce(dependencies, confirm);
    } catch (error) {
      pool.log.warn({ err: error }, 'reconciliation failed; it is retried');
      await sleep(RETRY_MS, signal);
    }
  }
  return summaryOf([], []);
}

async function reconcileOnce(
  dependencies: ReconcileDependencies,
  confirm: Confirm,
): Promise<Reconciled> {
  const { pool } = dependencies;
  const findSteps = async () => confirm(planSteps(await observe(dependencies)));
  const done: Step[] = [];
  let left = await findSteps();
  for (let pass = 1; pass <= PASSES_MAX && left.length > 0; pass += 1) {
    // What could not be stopped still runs: its end is not reported.
    const stillThere = new Set<string>();
    for (const step of left) {
      if (reportsEndOf(step, stillThere)) continue;
      pool.log.warn({ step: step.do, ...idsOf(step) }, 'event store and server differ; correcting');
      if (await tryStep(dependencies, step)) done.push(step);
      else if (step.do === 'stop-stray') stillThere.add(step.workloadId);
    }
    left = await findSteps();
  }
  return summaryOf(done, left);
}

/** Whether a step reports the end of one of these browsers. */
function reportsEndOf(step: Step, workloadIds: ReadonlySet<string>): boolean {
  if (step.do === 'report-gone') return workloadIds.has(step.workloadId);
  if (step.do !== 'confirm-stopped') return false;
  return workloadIds.has(step.session.workload?.workloadId ?? '');
}

function isConfirmed(since: number): boolean {
  return performance.now() - since >= CONFIRM_MS;
}

/** Tracks the differences of the last observation and since when each one has been found. */
function createDifferenceTracker() {
  let foundSince = new Map<string, number>();
  return {
    /** Takes what an observation found; returns what has been found for `CONFIRM_MS`. */
    note(found: Step[]): Step[] {
      const now = performance.now();
      const before = foundSince;
      foundSince = new Map(
        found.map(differenceOf).map((difference) => [difference, before.get(difference) ?? now]),
      );
      return found.filter((step) => isConfirmed(foundSince.get(differenceOf(step)) ?? now));
    },
    /** Whether a difference is not confirmed yet. */
    haveUnconfirmed: () => [...foundSince.values()].some((since) => !isConfirmed(since)),
  };
}

/**
 * Applies a step. False where the step itself fails (a container that cannot be removed, an
 * unreadable event): it is left, and the other steps are applied.
 * @throws Unavailable if no step can be applied now
 */
async function tryStep(dependencies: ReconcileDependencies, step: Step): Promise<boolean> {
  const { pool, signal } = dependencies;
  try {
    await applyStep(dependencies, step);
    return true;
  } catch (error) {
    if (error instanceof Unavailable || signal.aborted) throw error;
    pool.log.error({ err: error, step: step.do, ...idsOf(step) }, 'failed to correct a difference');
    return false;
  }
}

function summaryOf(done: readonly Step[], left: readonly Step[]): Reconciled {
  const count = (...kinds: Step['do'][]) => done.filter((step) => kinds.includes(step.do)).length;
  return {
    adopted: count('adopt'),
    stopped: count('stop-stray', 'retire-ended'),
    failed: count('fail-session', 'report-exit'),
    corrected: count(
      'report-gone',
      'confirm-stopped',
      'confirm-closed',
      'take-again',
      'end-workload',
    ),
    leaks: leaksOf(left),
  };
}

function idsOf(step: Step): { workloadId?: string; sessionId?: string } {
  return {
    ...('workloadId' in step ? { workloadId: step.workloadId } : {}),
    ...('session' in step && step.session !== null ? { sessionId: step.session.id } : {}),
  };
}
