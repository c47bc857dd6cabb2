import type { SessionState } from '#events/session.ts';
import { doubling, retry } from '#src/kernel/async/retry.ts';
import { isOutage } from '#src/kernel/errors.ts';
import { isSaveUnderWay } from '#src/kernel/domain/session/decide-profile.ts';
import { isFinal, type SessionIdentity } from '#src/kernel/domain/session/session.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { loadState, withState } from '#src/kernel/event-store/load-state.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { beginParts } from '../browser-part.ts';
import { endSession, handleExit, saveProfile, terminateBrowser } from '../pool/terminate.ts';
import type { Step } from './plan.ts';
import { openEgressFor, recordEvery } from '../pool/egress.ts';
import { DEFAULTS, launchOptionsOf, specOf } from '../pool/options.ts';
import { labelBrowser } from '../pool/assign-browser.ts';
import type { Pool } from '../pool/pool.ts';
import { acceptRequest } from '../pool/accept-requests.ts';

const ACTOR = 'provisioner/reconcile';

/**
 * Applies one step. Each command is decided on the log's current state, so that a step that is out
 * of date does nothing.
 */
export async function applyStep(
  { context, pool, signal }: { context: CommandContext; pool: Pool; signal: AbortSignal },
  step: Step,
): Promise<void> {
  const { reporter, roster, browsers } = pool;
  const now = pool.now();
  const metadata = newMetadata(ACTOR);
  switch (step.do) {
    case 'adopt':
      return adopt({ context, pool, signal }, step.workloadId, step.session);
    case 'stop-stray':
      // Not if it was launched after the observation began: then this process is in charge of it.
      if (roster.get(step.workloadId) === null) await browsers.stop(step.workloadId);
      return;
    case 'report-exit': {
      const detail = 'the browser is gone and its end was not observed';
      const exit = { reason: 'browser_crashed', exitCode: null, endedAt: now, detail } as const;
      return handleExit(pool, { workloadId: step.workloadId, ...exit });
    }
    case 'report-gone': {
      const end = step.wasClosed
        ? ({ reason: 'closed', exitCode: 0 } as const)
        : ({ reason: 'server_lost', exitCode: null } as const);
      return reporter.workload(step.workloadId, { type: 'ReportTerminated', ...end }, metadata);
    }
    case 'confirm-closed': {
      const closed = { type: 'ReportBrowserClosed', closedAt: step.closedAt, now } as const;
      await reporter.session(identityOf(step.session), closed, metadata);
      return;
    }
    case 'confirm-stopped':
      await reporter.session(identityOf(step.session), { type: 'ConfirmStopped', now }, metadata);
      return;
    case 'fail-session': {
      const detail = 'the browser was gone when its server was reconciled';
      const failure = { reason: 'server_lost', detail, exitCode: null, now } as const;
      const command = { type: 'FailSession', ...failure } as const;
      await reporter.session(identityOf(step.session), command, metadata);
      return;
    }
    case 'take-again': {
      const identity = identityOf(step.session);
      const last = await context.eventStore.readLast<'session'>({ kind: 'session', ...identity });
      if (last === null) return;
      const event = await withState(context.eventStore, last);
      if (isUnserved(pool, event.state)) await acceptRequest(pool, identity, event);
      return;
    }
    case 'retire-ended': {
      const pooled = roster.get(step.workloadId);
      if (pooled?.phase === 'idle') await terminateBrowser(pool, pooled, 'retired');
      return;
    }
    case 'end-workload': {
      const pooled = roster.get(step.workloadId);
      if (pooled !== null) await terminateBrowser(pool, pooled, 'session_ended');
    }
  }
}

/** Whether a session still waits for a browser and this process has not accepted it already. */
function isUnserved({ waiting, roster }: Pool, { id, status, workload }: SessionState): boolean {
  const isWaiting = (status === 'creating' || status === 'queued') && workload === null;
  const isInHand =
    waiting.some(({ identity }) => identity.id === id) ||
    roster.all().some(({ session }) => session?.id === id);
  return isWaiting && !isInHand;
}

/**
 * Adopts a browser of an earlier process. Its session is read again afterwards: a stop that came in
 * before the adoption found no browser to terminate. Its end is not awaited then: the start of the
 * process would wait for the save of its profile.
 */
async function adopt(
  { context, pool, signal }: { context: CommandContext; pool: Pool; signal: AbortSignal },
  workloadId: string,
  session: SessionState | null,
): Promise<void> {
  if (pool.roster.get(workloadId) !== null) return;
  const egress = session === null ? null : await openEgressFor(pool, session);
  const vncPassword = pool.vncPasswordOf(workloadId);
  const launchedWith =
    session === null ? undefined : { workloadId, vncPassword, ...specOf(session.browser) };
  const browser = await pool.browsers.adopt(workloadId, egress ?? undefined, launchedWith);
  if (browser === null) {
    await egress?.[Symbol.asyncDispose]();
    return;
  }
  const identity = session === null ? null : identityOf(session);
  const options = session === null ? DEFAULTS : launchOptionsOf(session);
  const pooled = pool.roster.adopt(browser, options, identity);
  pooled.egress = egress;
  if (session === null || identity === null) return;
  recordEvery(pool, pooled);
  const { organizationId, id: sessionId } = identity;
  // The process before may have ended between the assignment and the label.
  labelBrowser(pool, workloadId, sessionId);
  const assign = { type: 'Assign', organizationId, sessionId } as const;
  void pool.reporter.queue(pooled, assign, newMetadata(ACTOR));
  // From the leader: its parts go on after what they have recorded. The browser is in the roster by
  // now, and so is not adopted again: an event store that is away is waited for.
  const read = () =>
    loadState<'session'>(context.eventStore, { kind: 'session', ...identity }, LEADER);
  const { state } = await retry({ pauseMs: READ_PAUSE_MS, isTransient: isAway, signal }, read);
  // It has ended meanwhile, and with it all of these.
  if (pooled.phase !== 'busy') return;
  const isOver = state === null || state.status === 'stopping' || isFinal(state.status);
  if (isOver) return endSession(pool, pooled);
  beginParts(pool, browser, state, true);
  // The process before has not finished it, or none was there to learn of it.
  if (isSaveUnderWay(state.profile, pool.now())) saveProfile(pool, pooled, newMetadata(ACTOR));
}

const LEADER = { fromLeader: true };
const READ_PAUSE_MS = doubling(100, 2_000);

/** A session that only a newer version can read stays unread. */
function isAway(error: unknown): boolean {
  return isOutage(error);
}

function identityOf({ organizationId, id }: SessionState): SessionIdentity {
  return { organizationId, id };
}
