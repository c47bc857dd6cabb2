import { createBackOff } from '#src/kernel/async/back-off.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { EventMetadata } from '#events/envelope.ts';
import type { EventWithState, RecordedOf } from '#events/events.ts';
import type { FailureReason } from '#events/session.ts';
import type { TerminationReason } from '#events/workload.ts';
import { metadataFrom, newMetadata } from '#src/commands/metadata.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import type { BrowserExit } from '#src/browsers/browsers.ts';
import { closeEgress } from './egress.ts';
import { until, type Pool } from './pool.ts';
import { endParts, followParts, leaveParts, type EndFacts } from '../browser-part.ts';
import { redact } from '#src/browsers/redact.ts';
import type { PooledBrowser } from './roster.ts';

const ACTOR = 'provisioner';
/**
 * A stop's caller is answered first: the end of a browser keeps a core busy. Without it the row
 * `release` of `npm run bench -- lifecycle` takes 1.8 times as long. Nothing depends on the order.
 */
const ANSWER_FIRST_MS = 15;

/**
 * Terminates a browser: stops its processes, reports that, and confirms the stop of its session.
 * Idempotent. Resolves when the reports are appended, or once the removal has failed: a browser
 * that cannot be removed keeps its place, is tried again, and is reported when it is gone.
 * @param event the session event that caused it, if any
 */
export async function terminateBrowser(
  pool: Pool,
  pooled: PooledBrowser,
  reason: TerminationReason,
  event?: RecordedOf<'session'>,
): Promise<void> {
  await Promise.race([endOf(pool, pooled, reason, event), pooled.removalFailed.promise]);
}

/** The browser's end: begun now, or under way. A server must not leave before it is reported. */
function endOf(...[pool, pooled, reason, event]: Parameters<typeof endBrowser>): Promise<boolean> {
  if (pooled.phase !== 'ending') pooled.ended = endBrowser(pool, pooled, reason, event);
  return pooled.ended;
}

/**
 * @returns false where the pool has closed before the browser could be removed: no end is reported
 */
async function endBrowser(
  pool: Pool,
  pooled: PooledBrowser,
  reason: TerminationReason,
  event?: RecordedOf<'session'>,
): Promise<boolean> {
  pool.roster.move(pooled, 'ending');
  if (event !== undefined) await sleep(ANSWER_FIRST_MS);
  const cause = () => (event === undefined ? newMetadata(ACTOR) : metadataFrom(event, ACTOR));
  void pool.reporter.queue(pooled, { type: 'Terminate', reason }, cause());
  const ends = endParts(pool, pooled);
  const span = event === undefined ? undefined : traceTermination(pool, pooled, event);
  await ends.beforeStop;
  if (reason === 'session_ended' || reason === 'server_stopped')
    await pool.profiles.saveAtEnd(pooled, { isClosed: false }, cause());
  const isGone = await stopBrowser(pool, pooled);
  span?.end();
  if (!isGone) {
    pool.hasUnreportedEnd = true;
    pool.roster.remove(pooled.workloadId);
    return false;
  }
  await closeEgress(pool, pooled);
  const terminated = { type: 'ReportTerminated', reason, exitCode: null } as const;
  await pool.reporter.queue(pooled, terminated, cause());
  try {
    // Nothing more is reported of an ended session.
    const facts = await ends.beforeReport;
    if (pooled.session !== null) await confirmStopped(pool, pooled, facts, event);
  } finally {
    // The browser is gone in any case; reconciliation finds a session whose report failed.
    pool.roster.remove(pooled.workloadId);
  }
  return true;
}

/** The span of a termination is below the event that caused it. */
function traceTermination(
  { tracer }: Pool,
  { workloadId }: PooledBrowser,
  { metadata }: RecordedOf<'session'>,
) {
  return tracer?.begin('end browser', {
    kind: 'consumer',
    parent: metadata.traceparent,
    attributes: { 'bss.workload_id': workloadId },
  });
}

/** Pauses between attempts to stop a browser. A restarting Docker engine is back in seconds. */
const STOP_RETRY_MS = 500;
const STOP_RETRY_MAX_MS = 10_000;

/**
 * Stops a browser, with retries until the pool closes: what still runs takes its place.
 * @returns false where the pool has closed before; the next start's reconciliation finds it
 */
async function stopBrowser(pool: Pool, pooled: PooledBrowser): Promise<boolean> {
  const { workloadId } = pooled;
  const backOff = createBackOff(STOP_RETRY_MS, STOP_RETRY_MAX_MS);
  for (;;) {
    try {
      await pool.browsers.stop(workloadId);
      return true;
    } catch (error) {
      pool.log.error({ err: error, workloadId }, 'failed to stop a browser; not reported as ended');
    }
    pooled.isUnremovable = true;
    pooled.removalFailed.resolve();
    if (pool.isClosed) return false;
    pool.changed();
    await until(pool, () => pool.isClosed, AbortSignal.timeout(backOff.nextMs()));
  }
}

async function confirmStopped(
  pool: Pool,
  { session }: PooledBrowser,
  facts: EndFacts,
  event?: RecordedOf<'session'>,
): Promise<void> {
  if (session === null) return;
  const metadata = event === undefined ? newMetadata(ACTOR) : metadataFrom(event, ACTOR);
  const command = { type: 'ConfirmStopped', ...facts, now: pool.now() } as const;
  await pool.reporter.session(session, command, metadata);
}

const TERMINATIONS = {
  browser_closed: 'closed',
  browser_crashed: 'crashed',
  out_of_memory: 'out_of_memory',
  // The events know no word of its own; the detail has it.
  storage_exceeded: 'out_of_memory',
} as const;

/**
 * Handles a browser that ended without a stop: its session is stopped where the user closed the
 * browser, and fails otherwise. The pool launches another one.
 */
export async function handleExit(pool: Pool, exit: BrowserExit): Promise<void> {
  const pooled = pool.roster.get(exit.workloadId);
  if (pooled === null || pooled.phase === 'ending') return;
  pooled.ended = reportExit(pool, pooled, exit);
  await pooled.ended;
}

async function reportExit(pool: Pool, pooled: PooledBrowser, exit: BrowserExit): Promise<boolean> {
  const { session } = pooled;
  pool.roster.move(pooled, 'ending');
  const { reason, exitCode } = exit;
  const detail = redact(exit.detail, [pool.vncPasswordOf(pooled.workloadId)]);
  const fields = { ...exit, detail, session };
  if (reason === 'browser_closed') pool.log.info(fields, 'browser closed by its user');
  else pool.log.warn(fields, 'browser ended unexpectedly');
  // It runs until here, and stores on.
  if (reason === 'storage_exceeded') await stopBrowser(pool, pooled);
  // Before its end: an ended session does not change any more.
  await closeEgress(pool, pooled);
  const ends = endParts(pool, pooled, exit);
  await ends.beforeStop;
  const facts = await ends.beforeReport;
  try {
    if (exit.hasProfile === true) {
      await pool.profiles.saveAtEnd(pooled, { isClosed: true }, newMetadata(ACTOR));
      await stopBrowser(pool, pooled);
    }
    if (session !== null) {
      const command = sessionCommandFor({ ...exit, detail }, pool.server.id, pool.now());
      await pool.reporter.session(session, { ...command, ...facts }, newMetadata(ACTOR));
    }
  } finally {
    const terminated = {
      type: 'ReportTerminated',
      reason: TERMINATIONS[reason],
      exitCode,
    } as const;
    await pool.reporter.queue(pooled, terminated, newMetadata(ACTOR));
    pool.roster.remove(pooled.workloadId);
  }
  return true;
}

function failureOf(reason: Exclude<BrowserExit['reason'], 'browser_closed'>): FailureReason {
  return reason === 'storage_exceeded' ? 'out_of_memory' : reason;
}

function sessionCommandFor(
  { reason, detail, exitCode, endedAt }: BrowserExit,
  serverId: string,
  now: number,
): Extract<SessionCommand, { type: 'ReportBrowserClosed' | 'FailSession' }> {
  return reason === 'browser_closed'
    ? { type: 'ReportBrowserClosed', closedAt: endedAt, now }
    : { type: 'FailSession', reason: failureOf(reason), detail, exitCode, serverId, now };
}

/**
 * Handles a session event: a session that stops leaves the queue, or its browser is terminated.
 * The parts of one that goes on follow its state.
 */
export function handleSessionEvent(pool: Pool, event: EventWithState<'session'>): void {
  const { state } = event;
  if (event.type === 'session.profile-save-requested') return saveOnRequest(pool, event);
  if (state.status === 'active') {
    followParts(pool, state);
    return;
  }
  if (state.status !== 'stopping' && !isFinal(state.status)) return;
  const at = pool.waiting.findIndex(({ identity }) => identity.id === state.id);
  if (at !== -1) {
    pool.waiting.splice(at, 1);
    pool.changed();
  }
  if (state.workload?.serverId !== pool.server.id) return;
  const pooled = pool.roster.get(state.workload.workloadId);
  if (pooled?.phase !== 'busy') return;
  endSession(pool, pooled, event);
}

/**
 * Terminates the browser of a session that stops or has ended. Begins at once, so that a server
 * that leaves in this moment finishes it; a failure is logged.
 * @param event the session event that caused it, if any
 */
export function endSession(pool: Pool, pooled: PooledBrowser, event?: RecordedOf<'session'>): void {
  terminateBrowser(pool, pooled, 'session_ended', event).catch((error: unknown) =>
    pool.log.error({ err: error, workloadId: pooled.workloadId }, 'failed to end a session'),
  );
}

function saveOnRequest(pool: Pool, event: EventWithState<'session'>): void {
  const { workload } = event.state;
  if (workload?.serverId !== pool.server.id) return;
  const pooled = pool.roster.get(workload.workloadId);
  if (pooled?.phase === 'busy') saveProfile(pool, pooled, metadataFrom(event, ACTOR));
}

/** Saves the profile of a session that goes on: after the saves before, before that of its end. */
export function saveProfile(pool: Pool, pooled: PooledBrowser, metadata: EventMetadata): void {
  pooled.saving = pooled.saving.then(() => pool.profiles.saveNow(pooled, metadata));
}

/**
 * Terminates all launched browsers. Those still being launched are terminated once they are ready,
 * as long as the pool is closed.
 */
export async function drainPool(pool: Pool, reason: TerminationReason): Promise<void> {
  const browsers = pool.roster.all().filter(({ phase }) => phase !== 'launching');
  await Promise.allSettled(browsers.map((pooled) => terminateBrowser(pool, pooled, reason)));
}

/** From now on browsers are launched and requests accepted. */
export function setOpen(pool: Pool): void {
  pool.isOpen = true;
  pool.isClosed = false;
  pool.changed();
}

/** From now on nothing is launched and no request is accepted. */
export function setClosed(pool: Pool): void {
  pool.isOpen = false;
  pool.isClosed = true;
  pool.changed();
}

/**
 * Closes the pool of a server that leaves: no request is accepted, sessions are stopped with the
 * reason `operator`, and all browsers are terminated. Launches under way are cancelled.
 * @returns false if the end of a session could not be recorded
 */
export async function closePool(pool: Pool): Promise<boolean> {
  setClosed(pool);
  pool.waiting.length = 0;
  const ended = await Promise.allSettled(
    pool.roster.all().map(async (pooled) => {
      if (pooled.phase === 'busy' && pooled.session !== null) {
        const stop = { type: 'StopSession', reason: 'operator', now: pool.now() } as const;
        await pool.reporter.session(pooled.session, stop, newMetadata(ACTOR));
      }
      const isGone = await endOf(pool, pooled, 'server_stopped');
      await pooled.reports;
      if (!isGone) throw new Error(`the browser ${pooled.workloadId} could not be removed`);
    }),
  );
  return ended.every(({ status }) => status === 'fulfilled') && !pool.hasUnreportedEnd;
}

/** Bound on finishing launches, stops and saves before detaching; the next start does the rest. */
const DETACH_WITHIN_MS = 5_000;

/**
 * Detaches the pool for a restart: no request is accepted, launches, stops and saves of profiles
 * under way are finished, and running browsers are left for the next process to adopt.
 * @returns whether a browser or a waiting request is left
 */
export async function detachPool(pool: Pool): Promise<boolean> {
  setClosed(pool);
  const detaching = pool.browsers
    .leave?.()
    .catch((error: unknown) =>
      pool.log.warn({ err: error }, 'failed to finish launches and stops before detaching'),
    );
  const isQuiet = () => {
    const { launching, ending } = pool.roster.counts();
    return launching + ending === 0;
  };
  const saves = Promise.all(pool.roster.all().map(({ saving }) => saving));
  await leaveParts(pool);
  await Promise.all([
    until(pool, isQuiet, AbortSignal.timeout(DETACH_WITHIN_MS)),
    within(DETACH_WITHIN_MS, saves, () => undefined),
  ]);
  await detaching;
  await Promise.allSettled(pool.requeues);
  const left = pool.roster.all();
  // The next process opens them again.
  await Promise.all(left.map((pooled) => closeEgress(pool, pooled)));
  await Promise.all(left.map(({ reports }) => reports));
  return left.length + pool.waiting.length > 0;
}
