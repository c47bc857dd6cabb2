import type { SessionState } from '#events/session.ts';
import { isFinal, type SessionIdentity } from '#src/domain/session/session.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { load } from '#src/event-store/load-state.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import { browserExited, endWorkload } from '../pool/terminate.ts';
import type { Step } from './plan.ts';
import { DEFAULTS } from '../pool/options.ts';
import { report, type Pool } from '../pool/pool.ts';
import { takeOn } from '../pool/assign-browser.ts';

const ME = 'provisioner/reconcile';

/** Does one step of a comparison; against the log as it stands then, so a step too many is none. */
export async function carryOut(
  { desk, pool }: { desk: Desk; pool: Pool },
  step: Step,
): Promise<void> {
  const { reporter, roster, browsers } = pool;
  const now = pool.now();
  const cause = causeBy(ME);
  switch (step.do) {
    case 'adopt':
      return adopt(desk, pool, step.workloadId, step.session);
    case 'stop-stray':
      // Launched since the comparison began: this process is in charge of it after all.
      if (roster.get(step.workloadId) === null) await browsers.stop(step.workloadId);
      return;
    case 'report-exit': {
      const detail = 'it was not there any more';
      const exit = { reason: 'browser_crashed', exitCode: null, endedAt: now, detail } as const;
      return browserExited(pool, { workloadId: step.workloadId, ...exit });
    }
    case 'report-gone': {
      const end = step.wasClosed
        ? ({ reason: 'closed', exitCode: 0 } as const)
        : ({ reason: 'server_lost', exitCode: null } as const);
      return reporter.workload(step.workloadId, { type: 'ReportTerminated', ...end }, cause);
    }
    case 'confirm-closed': {
      const closed = { type: 'ReportBrowserClosed', closedAt: step.closedAt, now } as const;
      await reporter.session(identityOf(step.session), closed, cause);
      return;
    }
    case 'confirm-stopped':
      await reporter.session(identityOf(step.session), { type: 'ConfirmStopped', now }, cause);
      return;
    case 'fail-session': {
      const detail = 'its browser was gone when the server came back';
      const failure = { reason: 'server_lost', detail, exitCode: null, now } as const;
      const command = { type: 'FailSession', ...failure } as const;
      await reporter.session(identityOf(step.session), command, cause);
      return;
    }
    case 'take-again': {
      const identity = identityOf(step.session);
      const event = await desk.log.last<'session'>({ kind: 'session', ...identity });
      if (event !== null && isToServe(pool, event.state)) await takeOn(pool, identity, event);
      return;
    }
    case 'end-workload': {
      const member = roster.get(step.workloadId);
      if (member !== null) await endWorkload(pool, member, 'session_ended');
    }
  }
}

/** Whether a session still waits for a browser, and this process has not taken it on already. */
function isToServe({ waiting, roster }: Pool, { id, status, workload }: SessionState): boolean {
  const isWaiting = (status === 'creating' || status === 'queued') && workload === null;
  const isInHand =
    waiting.some(({ identity }) => identity.id === id) ||
    roster.all().some(({ session }) => session?.id === id);
  return isWaiting && !isInHand;
}

/**
 * Takes a browser over from an earlier process. Its session is looked up once more: a stop of it
 * that came meanwhile found nobody in charge.
 */
async function adopt(
  desk: Desk,
  pool: Pool,
  workloadId: string,
  session: SessionState | null,
): Promise<void> {
  if (pool.roster.get(workloadId) !== null) return;
  const browser = await pool.browsers.adopt(workloadId);
  if (browser === null) return;
  const identity = session === null ? null : identityOf(session);
  const member = pool.roster.adopt(browser, session?.browser ?? DEFAULTS, identity);
  if (identity === null) return;
  const { organizationId, id: sessionId } = identity;
  void report(pool, member, { type: 'Assign', organizationId, sessionId }, causeBy(ME));
  const { state } = await load<'session'>(desk.log, { kind: 'session', ...identity });
  const isOver = state === null || state.status === 'stopping' || isFinal(state.status);
  if (isOver) await endWorkload(pool, member, 'session_ended');
}

function identityOf({ organizationId, id }: SessionState): SessionIdentity {
  return { organizationId, id };
}
