import { launchesWanted, mustEvict } from '#src/domain/fleet/pool-policy.ts';
import { newId } from '#src/ids.ts';
import { causeAfter, causeBy } from '#src/commands/metadata.ts';
import { LaunchFailed } from '../browsers/browsers.ts';
import { endWorkload } from './terminate.ts';
import { DEFAULTS, isSame, specOf } from './options.ts';
import { factsOf, report, unservedOf, until, type Pool, type Waiting } from './pool.ts';
import { redact } from '../browsers/redact.ts';
import type { Member } from './roster.ts';
import { serve } from './assign-browser.ts';

const ME = 'provisioner';
/** Failed launches after which the request that waited longest goes elsewhere, or fails. */
const LAUNCHES_MAX = 3;
/** Launches whose times are known; their median is what the next is expected to take. */
const LAUNCH_TIMES_MAX = 9;
/** What an event's detail holds. */
const DETAIL_CHARS_MAX = 2048;
/** A taken browser is replaced this much later: the launch would slow its taker's first steps. */
const REFILL_AFTER_MS = 150;
/**
 * A browser that answers is still busy with its own start, most of a core for this long (measured);
 * nobody is told that it waits before. Who asks meanwhile gets it at once.
 */
const SETTLE_MS = 120;
/** After failed launches nobody waits for, the next comes later and later: doubled, up to this. */
const BACKOFF_MAX_MS = 30_000;

/**
 * Keeps the pool filled: at once where a request waits or nothing is in use, else after a pause.
 * Returns the function that ends it.
 */
export function keepFilled(pool: Pool): () => void {
  let timer: NodeJS.Timeout | null = null;

  function launchWanted(): void {
    timer = null;
    if (!pool.isOpen) return;
    // Asked anew for each: a launch is a change, on which others are launched before this goes on.
    while (launchesWanted(factsOf(pool)) > 0)
      launchOne(pool).catch((error: unknown) =>
        pool.log.error({ err: error }, 'what a launch came to was not told'),
      );
  }
  function consider(): void {
    if (!pool.isOpen) return;
    makeRoom(pool);
    if (launchesWanted(factsOf(pool)) === 0) return;
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

function fillDelay(pool: Pool): number {
  if (pool.waiting.length > 0) return 0;
  if (pool.failedLaunches > 0)
    return Math.min(BACKOFF_MAX_MS, REFILL_AFTER_MS * 2 ** pool.failedLaunches);
  return pool.roster.counts().busy + pool.roster.counts().ending > 0 ? REFILL_AFTER_MS : 0;
}

/** A full server whose idle browsers are not what a request asked for gives one of them up. */
function makeRoom(pool: Pool): void {
  if (!pool.canLaunch || !mustEvict(factsOf(pool))) return;
  const member = pool.roster.longestIdle();
  if (member !== null) void endWorkload(pool, member, 'retired');
}

async function launchOne(pool: Pool): Promise<void> {
  const workloadId = newId('wl');
  const [requester] = unservedOf(pool);
  const options = requester?.options ?? DEFAULTS;
  const member = pool.roster.add(workloadId, options);
  const cause = () => (requester === undefined ? causeBy(ME) : causeAfter(requester.event, ME));
  const provision = { type: 'Provision', serverId: pool.server.id } as const;
  const asked = isSame(options, DEFAULTS) ? {} : { browser: options };
  void report(pool, member, { ...provision, ...asked }, cause());
  void report(pool, member, { type: 'Launch' }, cause());
  const begunAt = performance.now();
  const span = requester === undefined ? undefined : traceLaunch(pool, requester, workloadId);
  try {
    const vncPassword = pool.vncPasswordOf(workloadId);
    member.browser = await pool.browsers.launch({ workloadId, vncPassword, ...specOf(options) });
  } catch (error) {
    span?.fail(error);
    return launchFailed(pool, member, error);
  } finally {
    span?.end();
  }
  pool.failedLaunches = 0;
  pool.lastFailure = null;
  const launchMs = Math.round(performance.now() - begunAt);
  pool.launchTimes.push(launchMs);
  if (pool.launchTimes.length > LAUNCH_TIMES_MAX) pool.launchTimes.shift();
  await settle(pool, member);
  // It has ended by itself meanwhile, and is nobody's any more.
  if (member.phase !== 'launching') return;
  void report(pool, member, { type: 'ReportIdle', launchMs }, cause());
  await ready(pool, member);
}

/** A launch is a part of the request it is for, though whoever waits longest gets the browser. */
function traceLaunch({ tracer }: Pool, { event }: Waiting, workloadId: string) {
  return tracer?.begin('launch browser', {
    kind: 'internal',
    parent: event.cause.traceparent,
    attributes: { 'bss.workload_id': workloadId },
  });
}

/** Resolves when the browser's own start is over, or somebody waits for it. */
function settle(pool: Pool, member: Member): Promise<void> {
  const isWanted = () =>
    !pool.isOpen || pool.waiting.some(({ options }) => isSame(options, member.options));
  return until(pool, isWanted, AbortSignal.timeout(SETTLE_MS));
}

/** A browser is ready: whoever has waited longest gets it, else it waits itself. */
async function ready(pool: Pool, member: Member): Promise<void> {
  if (!pool.isOpen) return endWorkload(pool, member, 'server_stopped');
  const at = pool.waiting.findIndex(({ options }) => isSame(options, member.options));
  const [next] = at === -1 ? [] : pool.waiting.splice(at, 1);
  if (next === undefined) {
    // Whoever asked for just this has gone; nobody else will.
    if (!isSame(member.options, DEFAULTS)) return endWorkload(pool, member, 'retired');
    return pool.roster.move(member, 'idle');
  }
  try {
    await serve(pool, member, next.identity, next.event);
  } catch (error) {
    pool.log.error({ err: error, session: next.identity }, 'a session was not given its browser');
  }
}

async function launchFailed(pool: Pool, member: Member, error: unknown): Promise<void> {
  const { workloadId } = member;
  const said = error instanceof LaunchFailed ? error.detail : '';
  const detail = redact(`${String(error)}\n${said}`.trim(), [pool.vncPasswordOf(workloadId)]);
  pool.failedLaunches += 1;
  pool.lastFailure = detail;
  // A launch that the server's own end cut short is no failure.
  if (pool.isOpen) pool.log.error({ detail, workloadId }, 'a browser did not launch');
  const gone = { type: 'ReportTerminated', reason: 'launch_failed', exitCode: null } as const;
  void report(pool, member, gone, causeBy(ME));
  const next = pool.waiting.find(({ options }) => isSame(options, member.options));
  // One that the machine's own absence cut short is none of the request's tries.
  if (next !== undefined && pool.canLaunch) next.failures += 1;
  try {
    if (next !== undefined && next.failures >= LAUNCHES_MAX) {
      pool.waiting.splice(pool.waiting.indexOf(next), 1);
      await giveUp(pool, next, detail.slice(0, DETAIL_CHARS_MAX));
    }
  } finally {
    pool.roster.remove(workloadId);
  }
}

/**
 * Puts a request that this server has taken, and can launch no browser for, back into the queue: it
 * waits here no more.
 * @param detail why, for the log
 */
export async function giveBack(pool: Pool, request: Waiting, detail: string): Promise<void> {
  const { identity, event, assigned } = request;
  const at = pool.waiting.indexOf(request);
  if (at !== -1) pool.waiting.splice(at, 1);
  pool.changed();
  await assigned;
  const command = { type: 'RequeueSession', serverId: pool.server.id, detail } as const;
  await pool.reporter.session(identity, command, causeAfter(event, ME));
}

/** A request that no browser launches for here goes elsewhere, where there is an elsewhere. */
async function giveUp(pool: Pool, request: Waiting, detail: string): Promise<void> {
  const { identity, event, assigned } = request;
  const tried = event.state.triedServers ?? [];
  const me = pool.server.id;
  const isOther = !tried.includes(me) && (await pool.hasOthers([...tried, me]));
  if (isOther) return giveBack(pool, request, detail);
  await assigned;
  const failure = { reason: 'launch_failed', detail, exitCode: null, now: pool.now() } as const;
  await pool.reporter.session(identity, { type: 'FailSession', ...failure }, causeAfter(event, ME));
}
