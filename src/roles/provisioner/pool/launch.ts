import { doubling } from '#src/kernel/async/retry.ts';
import { launchesWanted, mustEvict } from '#src/kernel/domain/fleet/pool-policy.ts';
import { newId } from '#src/kernel/ids.ts';
import { metadataFrom, newMetadata } from '#src/commands/metadata.ts';
import { LaunchFailed, type BrowserSpec, type RunningBrowser } from '#src/browsers/browsers.ts';
import { terminateBrowser } from './terminate.ts';
import { closeEgress, openEgressFor } from './egress.ts';
import { browserOptionsOf, DEFAULTS, isSame, specOf, type LaunchOptions } from './options.ts';
import {
  nextToLaunch,
  poolFacts,
  takeNextFor,
  until,
  unwantedLaunches,
  type Pool,
  type WaitingRequest,
} from './pool.ts';
import { redact } from '#src/browsers/redact.ts';
import type { PooledBrowser } from './roster.ts';
import { assignBrowser } from './assign-browser.ts';

const ACTOR = 'provisioner';
/** Failed launches after which the longest waiting request is requeued, or fails. */
const LAUNCHES_MAX = 3;
/** Launches whose durations are kept; their median is the expected duration of the next. */
const LAUNCH_TIMES_MAX = 9;
/** The longest `detail` of an event. */
const DETAIL_CHARS_MAX = 2048;
/**
 * A launch that replaces an assigned browser waits: it would slow down that client's first steps.
 */
const REFILL_AFTER_MS = 150;
/**
 * A browser that is ready still uses most of a core for its own start, for this long (measured). It
 * counts as idle only then, but a waiting request gets it at once.
 */
const SETTLE_MS = 120;
/** Longest pause after failed launches that no request waits for; it doubles up to this. */
const BACKOFF_MAX_MS = 30_000;

/**
 * Keeps the pool filled: launches at once where a request waits or no browser is in use, else after
 * a pause.
 * @returns the function that ends it
 */
export function keepFilled(pool: Pool): () => void {
  let timer: NodeJS.Timeout | null = null;

  function launchWanted(): void {
    timer = null;
    if (!pool.isOpen) return;
    // Evaluated for each launch: adding it notifies listeners, which may launch more before it
    // returns.
    while (launchesWanted(poolFacts(pool)) > 0)
      launchOne(pool).catch((error: unknown) =>
        pool.log.error({ err: error }, 'failed to report launch result'),
      );
  }
  function consider(): void {
    if (!pool.isOpen) return;
    cancelUnwanted(pool);
    makeRoom(pool);
    if (launchesWanted(poolFacts(pool)) === 0) return;
    const delayMs = fillDelay(pool);
    if (delayMs === 0) {
      if (timer !== null) clearTimeout(timer);
      launchWanted();
    } else timer ??= setTimeout(launchWanted, delayMs);
  }
  const forget = pool.onChange(consider);
  consider();
  return () => {
    forget();
    if (timer !== null) clearTimeout(timer);
  };
}

/** Ends launches whose requester has gone, one at each call: ending it changes the pool. */
function cancelUnwanted(pool: Pool): void {
  const [pooled] = unwantedLaunches(pool);
  if (pooled === undefined) return;
  terminateBrowser(pool, pooled, 'session_ended').catch((error: unknown) =>
    pool.log.error({ err: error, workloadId: pooled.workloadId }, 'failed to cancel a launch'),
  );
}

const backOffMs = doubling(2 * REFILL_AFTER_MS, BACKOFF_MAX_MS);

function fillDelay(pool: Pool): number {
  if (pool.waiting.length > 0) return 0;
  if (pool.failedLaunches > 0) return backOffMs(pool.failedLaunches);
  return pool.roster.counts().busy + pool.roster.counts().ending > 0 ? REFILL_AFTER_MS : 0;
}

/**
 * Retires an idle browser of a full server if none of them can serve the waiting request. An
 * organization with a launch under way waits for that first: with requests for special options it
 * could take one idle browser after the other from all organizations.
 */
function makeRoom(pool: Pool): void {
  if (!pool.canLaunch || !mustEvict(poolFacts(pool))) return;
  if ((nextToLaunch(pool)?.launches ?? 0) > 0) return;
  const pooled = pool.roster.longestIdle();
  if (pooled !== null) void terminateBrowser(pool, pooled, 'retired');
}

async function launchOne(pool: Pool): Promise<void> {
  const workloadId = newId('wl');
  const requester = nextToLaunch(pool)?.request ?? null;
  const options = requester?.options ?? DEFAULTS;
  const launchedFor = requester?.identity.organizationId ?? null;
  const pooled = pool.roster.add(workloadId, options, launchedFor);
  const cause = () =>
    requester === null ? newMetadata(ACTOR) : metadataFrom(requester.event, ACTOR);
  const provision = { type: 'Provision', serverId: pool.server.id } as const;
  const asked = isSame(options, DEFAULTS) ? {} : { browser: browserOptionsOf(options) };
  void pool.reporter.queue(pooled, { ...provision, ...asked }, cause());
  void pool.reporter.queue(pooled, { type: 'Launch' }, cause());
  const begunAt = performance.now();
  const span = requester === null ? undefined : traceLaunch(pool, requester, workloadId);
  try {
    const vncPassword = pool.vncPasswordOf(workloadId);
    if (requester !== null) pooled.egress = await openEgressFor(pool, requester.event.state);
    // It was cancelled before there was a browser to stop.
    if (pooled.phase !== 'launching') return await closeEgress(pool, pooled);
    const egress = pooled.egress === null ? {} : { egress: pooled.egress };
    const spec = {
      workloadId,
      vncPassword,
      ...specOf(options),
      ...egress,
      ...extensionsOf(pool, options, launchedFor),
    };
    pooled.browser = await launchWithProfile(pool, spec, options);
  } catch (error) {
    span?.fail(error);
    await closeEgress(pool, pooled);
    // It was cancelled: that is reported as its termination.
    if (pooled.phase !== 'launching') return;
    return launchFailed(pool, pooled, error);
  } finally {
    span?.end();
  }
  pool.failedLaunches = 0;
  pool.lastFailure = null;
  const launchMs = Math.round(performance.now() - begunAt);
  pool.launchTimes.push(launchMs);
  if (pool.launchTimes.length > LAUNCH_TIMES_MAX) pool.launchTimes.shift();
  await waitForSettled(pool, pooled);
  // It has ended by itself in the meantime.
  if (pooled.phase !== 'launching') return;
  void pool.reporter.queue(pooled, { type: 'ReportIdle', launchMs }, cause());
  await offerBrowser(pool, pooled);
}

/** An extension has the same bytes in each organization that has its id. */
function extensionsOf(pool: Pool, { extensions }: LaunchOptions, organizationId: string | null) {
  if (extensions === undefined || organizationId === null) return {};
  return { extensions: pool.extensionsOf(organizationId, extensions) };
}

/** Launches a browser, with the profile of the session that it is launched for. */
function launchWithProfile(
  { browsers, profiles }: Pool,
  spec: BrowserSpec,
  { profile }: LaunchOptions,
): Promise<RunningBrowser> {
  return profile === undefined ? browsers.launch(spec) : profiles.launch(spec, profile);
}

/**
 * The span of a launch is below the request that caused it; the longest waiting request may get it.
 */
function traceLaunch({ tracer }: Pool, { event }: WaitingRequest, workloadId: string) {
  return tracer?.begin('launch browser', {
    kind: 'internal',
    parent: event.metadata.traceparent,
    attributes: { 'bss.workload_id': workloadId },
  });
}

/** Resolves when the browser's own start is over, or a request waits for it. */
function waitForSettled(pool: Pool, pooled: PooledBrowser): Promise<void> {
  const isWanted = () =>
    !pool.isOpen || pool.waiting.some(({ options }) => isSame(options, pooled.options));
  return until(pool, isWanted, AbortSignal.timeout(SETTLE_MS));
}

/** Assigns a launched browser to the next request for its options, or makes it idle. */
async function offerBrowser(pool: Pool, pooled: PooledBrowser): Promise<void> {
  if (!pool.isOpen) return terminateBrowser(pool, pooled, 'server_stopped');
  const next = takeNextFor(pool, pooled.options);
  if (next === null) {
    // The request for these options has gone; no other is likely to come.
    if (!isSame(pooled.options, DEFAULTS)) return terminateBrowser(pool, pooled, 'retired');
    return pool.roster.move(pooled, 'idle');
  }
  try {
    await assignBrowser(pool, pooled, next.identity, next.event);
  } catch (error) {
    pool.log.error({ err: error, session: next.identity }, 'failed to assign a browser');
  }
}

async function launchFailed(pool: Pool, pooled: PooledBrowser, error: unknown): Promise<void> {
  const { workloadId } = pooled;
  const output = error instanceof LaunchFailed ? error.detail : '';
  const detail = redact(`${String(error)}\n${output}`.trim(), [pool.vncPasswordOf(workloadId)]);
  pool.failedLaunches += 1;
  pool.lastFailure = detail;
  // A launch that was cut short by the server's shutdown is no failure.
  if (pool.isOpen) pool.log.error({ detail, workloadId }, 'launch failed');
  const gone = { type: 'ReportTerminated', reason: 'launch_failed', exitCode: null } as const;
  void pool.reporter.queue(pooled, gone, newMetadata(ACTOR));
  const next = pool.waiting.find(({ options }) => isSame(options, pooled.options));
  // While the Docker engine is unavailable a failure does not count as the request's attempt.
  if (next !== undefined && pool.canLaunch) next.failures += 1;
  try {
    if (next !== undefined && next.failures >= LAUNCHES_MAX) {
      pool.waiting.splice(pool.waiting.indexOf(next), 1);
      await trackRequeue(pool, requeueOrFail(pool, next, detail.slice(0, DETAIL_CHARS_MAX)));
    }
  } finally {
    pool.roster.remove(workloadId);
  }
}

/**
 * Puts an accepted request that this server can launch no browser for back into the work queue.
 * @param detail the reason, for the event
 */
export async function requeue(pool: Pool, request: WaitingRequest, detail: string): Promise<void> {
  const { identity, event, assigned } = request;
  const at = pool.waiting.indexOf(request);
  if (at !== -1) pool.waiting.splice(at, 1);
  pool.changed();
  await assigned;
  const command = { type: 'RequeueSession', serverId: pool.server.id, detail } as const;
  await pool.reporter.session(identity, command, metadataFrom(event, ACTOR));
}

/** Notes that a request is being given back, until that is stored or has failed. */
export function trackRequeue(pool: Pool, work: Promise<void>): Promise<void> {
  const noted = work.finally(() => pool.requeues.delete(noted));
  pool.requeues.add(noted);
  return noted;
}

/** Requeues all accepted requests that have no browser yet. Never rejects. */
export async function requeueAll(pool: Pool, detail: string): Promise<void> {
  const waiting = pool.waiting.splice(0);
  for (const request of waiting) void trackRequeue(pool, requeue(pool, request, detail));
  // Those too that are given back for another reason.
  const requeued = await Promise.allSettled(pool.requeues);
  for (const one of requeued)
    if (one.status === 'rejected')
      pool.log.error({ err: one.reason as unknown }, 'failed to requeue a request');
}

/** Requeues a request whose launches failed, or fails its session if no other server is left. */
async function requeueOrFail(pool: Pool, request: WaitingRequest, detail: string): Promise<void> {
  const { identity, event, assigned } = request;
  // The state that was pulled may be from before an earlier requeue.
  const { triedServers: tried = [] } = (await assigned) ?? event.state;
  const me = pool.server.id;
  const hasOther = !tried.includes(me) && (await pool.hasOthers([...tried, me])) === true;
  if (hasOther) return requeue(pool, request, detail);
  const failure = { reason: 'launch_failed', detail, exitCode: null, now: pool.now() } as const;
  const command = { type: 'FailSession', ...failure, serverId: me } as const;
  await pool.reporter.session(identity, command, metadataFrom(event, ACTOR));
}
