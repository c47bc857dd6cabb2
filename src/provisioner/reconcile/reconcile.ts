import { setTimeout as pause } from 'node:timers/promises';
import type { ServerEvent } from '#events/server.ts';
import type { Views } from '#projections/store/views.ts';
import { Unavailable } from '#src/errors.ts';
import { createBell } from '#src/async/notifier.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import { compare } from './observe.ts';
import { carryOut } from './apply.ts';
import { differenceOf, leaksOf, nextSteps, type Step } from './plan.ts';
import type { Pool } from '../pool/pool.ts';

/** Between two comparisons; events are hints, the comparison is the truth. */
const EVERY_MS = 60_000;
/**
 * A difference is one once two looks, this far apart, have both found it. What happens here
 * is in the log a moment later, and a browser's end takes up to a second.
 */
const AGREE_MS = 3_000;
/** Pause after a comparison that could not be made: the log or the read model is away. */
const RETRY_MS = 500;
/** What was put right is looked at again, at most so often: what is left then is left. */
const PASSES_MAX = 3;

export type Reconciled = Extract<ServerEvent, { type: 'server.reconciled' }>['data'];
type Parts = { desk: Desk; views: Views; pool: Pool; signal: AbortSignal };
/** Which of the differences that a look found are to be put right. */
type Judge = (found: Step[]) => Step[];

export type Reconciler = {
  /** Compares now: what was heard of the machine or of the log may have had a gap. */
  soon: () => void;
  /** What the last comparison found and left. */
  last(): Reconciled;
  /** Resolves when the signal has aborted. */
  ended: Promise<void>;
};

/**
 * Holds what runs here against what the log says: once before it resolves, then every minute and
 * whenever it is asked to. A difference is put right once a second look, `AGREE_MS` later, finds it
 * too; by the first comparison at once, since nothing of this process is under way then.
 * @param onDone called with the result of each comparison but the first
 */
export async function reconcileEvery(
  parts: Parts,
  onDone: (reconciled: Reconciled) => Promise<void>,
): Promise<Reconciler> {
  const { signal, pool } = parts;
  const bell = createBell();
  const suspicions = createSuspicions();
  let last = await reconcileUntilDone(parts, (found) => {
    suspicions.note(found);
    return found;
  });
  let isAsked = false;
  async function run(): Promise<void> {
    while (!signal.aborted) {
      if (!isAsked) await bell.heard(signal, suspicions.areFresh() ? AGREE_MS : EVERY_MS);
      isAsked = false;
      if (signal.aborted || !pool.isOpen) continue;
      last = await reconcileUntilDone(parts, (found) => suspicions.note(found));
      await onDone(last).catch((error: unknown) =>
        pool.log.warn({ err: error }, 'a comparison was not told'),
      );
    }
  }
  function soon(): void {
    isAsked = true;
    bell.ring();
  }
  return { soon, last: () => last, ended: run() };
}

/** Tries until the log and the read model are there; nothing found where the signal aborted. */
async function reconcileUntilDone(parts: Parts, judge: Judge): Promise<Reconciled> {
  const { signal, pool } = parts;
  while (!signal.aborted) {
    try {
      return await reconcileOnce(parts, judge);
    } catch (error) {
      pool.log.warn({ err: error }, 'log and server not compared');
      await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
  return summaryOf([], []);
}

async function reconcileOnce(parts: Parts, judge: Judge): Promise<Reconciled> {
  const { pool } = parts;
  const look = async () => judge(nextSteps(await compare(parts)));
  const done: Step[] = [];
  let left = await look();
  for (let pass = 1; pass <= PASSES_MAX && left.length > 0; pass += 1) {
    for (const step of left) {
      pool.log.warn({ step: step.do, ...named(step) }, 'log and server differed');
      if (await isCarriedOut(parts, step)) done.push(step);
    }
    left = await look();
  }
  return summaryOf(done, left);
}

function hasAgreed(since: number): boolean {
  return performance.now() - since >= AGREE_MS;
}

/** The differences that the last look found, and for how long each look has found them. */
function createSuspicions() {
  let foundSince = new Map<string, number>();
  return {
    /** Takes what a look found; returns what every look since `AGREE_MS` ago has found. */
    note(found: Step[]): Step[] {
      const now = performance.now();
      const before = foundSince;
      foundSince = new Map(
        found.map(differenceOf).map((difference) => [difference, before.get(difference) ?? now]),
      );
      return found.filter((step) => hasAgreed(foundSince.get(differenceOf(step)) ?? now));
    },
    /** True while another look is to tell whether a difference is one. */
    areFresh: () => [...foundSince.values()].some((since) => !hasAgreed(since)),
  };
}

/**
 * False where the step itself fails (a container that cannot be removed, an event that cannot be
 * read): it is left, and keeps no other from being done.
 * @throws Unavailable where nothing can be done now
 */
async function isCarriedOut(parts: Parts, step: Step): Promise<boolean> {
  const { pool, signal } = parts;
  try {
    await carryOut(parts, step);
    return true;
  } catch (error) {
    if (error instanceof Unavailable || signal.aborted) throw error;
    pool.log.error({ err: error, step: step.do, ...named(step) }, 'a difference was not put right');
    return false;
  }
}

function summaryOf(done: readonly Step[], left: readonly Step[]): Reconciled {
  const count = (...kinds: Step['do'][]) => done.filter((step) => kinds.includes(step.do)).length;
  return {
    adopted: count('adopt'),
    stopped: count('stop-stray'),
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

function named(step: Step): { workloadId?: string; sessionId?: string } {
  return {
    ...('workloadId' in step ? { workloadId: step.workloadId } : {}),
    ...('session' in step && step.session !== null ? { sessionId: step.session.id } : {}),
  };
}
