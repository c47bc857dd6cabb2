import { setTimeout as pause } from 'node:timers/promises';
import type { RecordedOf } from '#events/events.ts';
import type { TerminationReason } from '#events/workload.ts';
import { causeAfter, causeBy } from '#src/commands/metadata.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { isFinal } from '#src/domain/session/session.ts';
import type { BrowserExit } from '../browsers/browsers.ts';
import { report, until, type Pool } from './pool.ts';
import { redact } from '../browsers/redact.ts';
import type { Member } from './roster.ts';

const ME = 'provisioner';
/** Between a stop's event and the end of its browser; its sockets are cut by then. */
const END_AFTER_MS = 15;

/**
 * Ends a browser and what of its session is left to end: its processes first, then the log is told.
 * Once only, however often it is asked for; resolves when the log knows.
 * @param event what led to it, if an event did
 */
export async function endWorkload(
  pool: Pool,
  member: Member,
  reason: TerminationReason,
  event?: RecordedOf<'session'>,
): Promise<void> {
  if (member.phase === 'ending') return;
  pool.roster.move(member, 'ending');
  const cause = () => (event === undefined ? causeBy(ME) : causeAfter(event, ME));
  void report(pool, member, { type: 'Terminate', reason }, cause());
  const span = event === undefined ? undefined : traceEnd(pool, member, event);
  await stopBrowser(pool, member.workloadId);
  span?.end();
  const gone = report(pool, member, { type: 'ReportTerminated', reason, exitCode: null }, cause());
  await gone;
  try {
    if (member.session !== null) await confirmStopped(pool, member, event);
  } finally {
    // A session that cannot be told of is the comparison's; its browser is gone all the same.
    pool.roster.remove(member.workloadId);
  }
}

/** The end of a browser is a part of what asked for it. */
function traceEnd({ tracer }: Pool, { workloadId }: Member, { cause }: RecordedOf<'session'>) {
  return tracer?.begin('end browser', {
    kind: 'consumer',
    parent: cause.traceparent,
    attributes: { 'bss.workload_id': workloadId },
  });
}

/** Tries at a browser that cannot be ended: an engine that restarts is back within this. */
const STOP_WITHIN_MS = 30_000;
const STOP_AGAIN_MS = 500;

/**
 * A browser that cannot be ended is left to the comparison, which finds it every minute; so is one
 * that this process has no time for.
 */
async function stopBrowser(pool: Pool, workloadId: string): Promise<void> {
  const deadline = performance.now() + STOP_WITHIN_MS;
  for (;;) {
    try {
      return await pool.browsers.stop(workloadId);
    } catch (error) {
      pool.log.error({ err: error, workloadId }, 'a browser could not be ended');
    }
    if (!pool.isOpen || performance.now() > deadline) return;
    await pause(STOP_AGAIN_MS);
  }
}

async function confirmStopped(
  pool: Pool,
  { session }: Member,
  event?: RecordedOf<'session'>,
): Promise<void> {
  if (session === null) return;
  const cause = event === undefined ? causeBy(ME) : causeAfter(event, ME);
  await pool.reporter.session(session, { type: 'ConfirmStopped', now: pool.now() }, cause);
}

const TERMINATIONS = {
  browser_closed: 'closed',
  browser_crashed: 'crashed',
  out_of_memory: 'out_of_memory',
} as const;

/**
 * A browser ended without a stop: its session is stopped where its user closed it, and has failed
 * otherwise. The pool makes another.
 */
export async function browserExited(pool: Pool, exit: BrowserExit): Promise<void> {
  const member = pool.roster.get(exit.workloadId);
  if (member === null || member.phase === 'ending') return;
  const { session } = member;
  pool.roster.move(member, 'ending');
  const { reason, exitCode } = exit;
  const detail = redact(exit.detail, [pool.vncPasswordOf(member.workloadId)]);
  const told = { ...exit, detail, session };
  if (reason === 'browser_closed') pool.log.info(told, 'a browser was closed by its user');
  else pool.log.warn(told, 'a browser ended by itself');
  try {
    if (session !== null)
      await pool.reporter.session(session, endOf({ ...exit, detail }, pool.now()), causeBy(ME));
  } finally {
    const why = TERMINATIONS[reason];
    await report(pool, member, { type: 'ReportTerminated', reason: why, exitCode }, causeBy(ME));
    pool.roster.remove(member.workloadId);
  }
}

function endOf({ reason, detail, exitCode, endedAt }: BrowserExit, now: number): SessionCommand {
  return reason === 'browser_closed'
    ? { type: 'ReportBrowserClosed', closedAt: endedAt, now }
    : { type: 'FailSession', reason, detail, exitCode, now };
}

/** What the log says of the sessions here: a stop that was asked for is carried out. */
export function sessionNoticed(pool: Pool, event: RecordedOf<'session'>): void {
  const { state } = event;
  if (state.status !== 'stopping' && !isFinal(state.status)) return;
  const at = pool.waiting.findIndex(({ identity }) => identity.id === state.id);
  if (at !== -1) {
    pool.waiting.splice(at, 1);
    pool.changed();
  }
  if (state.workload?.serverId !== pool.server.id) return;
  const member = pool.roster.get(state.workload.workloadId);
  if (member?.phase !== 'busy') return;
  // Whoever asked for the stop is answered first: what follows is work for both cores.
  setTimeout(() => {
    endWorkload(pool, member, 'session_ended', event).catch((error: unknown) =>
      pool.log.error({ err: error, workloadId: member.workloadId }, 'a session was not ended'),
    );
  }, END_AFTER_MS);
}

/**
 * Ends all browsers that are there. Those still being launched end as soon as they are, while the
 * pool is not open.
 */
export async function emptyPool(pool: Pool, reason: TerminationReason): Promise<void> {
  const members = pool.roster.all().filter(({ phase }) => phase !== 'launching');
  await Promise.allSettled(members.map((member) => endWorkload(pool, member, reason)));
}

/**
 * The server leaves: nothing new is taken, sessions are stopped by the operator's hand, all
 * browsers are ended. Browsers still being launched are ended as soon as they are there.
 */
export async function closePool(pool: Pool): Promise<void> {
  pool.isOpen = false;
  pool.waiting.length = 0;
  const members = pool.roster.all().filter(({ phase }) => phase !== 'launching');
  await Promise.allSettled(
    members.map(async (member) => {
      if (member.phase === 'busy' && member.session !== null) {
        const stop = { type: 'StopSession', reason: 'operator', now: pool.now() } as const;
        await pool.reporter.session(member.session, stop, causeBy(ME));
      }
      await endWorkload(pool, member, 'server_stopped');
      await member.reports;
    }),
  );
}

/** For what is under way when a server leaves its browsers behind; the next start compares. */
const SEEN_TO_MS = 5_000;

/**
 * The server is to be back at once: nothing new is taken, what is being launched or ended is seen
 * to its end, and the browsers that run or wait are left to be adopted.
 * @returns whether there is any, or a request that waits for one
 */
export async function leavePool(pool: Pool): Promise<boolean> {
  pool.isOpen = false;
  const leaving = pool.browsers
    .leave?.()
    .catch((error: unknown) =>
      pool.log.warn({ err: error }, 'what was being launched or ended was not seen to its end'),
    );
  const isQuiet = () => {
    const { launching, ending } = pool.roster.counts();
    return launching + ending === 0;
  };
  await until(pool, isQuiet, AbortSignal.timeout(SEEN_TO_MS));
  await leaving;
  const left = pool.roster.all();
  await Promise.all(left.map(({ reports }) => reports));
  return left.length + pool.waiting.length > 0;
}
