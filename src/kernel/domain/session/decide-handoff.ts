import type { Handoff } from '#events/handoff.ts';
import type { SessionEvent, SessionState } from '#events/session.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { HandoffCommand } from './commands.ts';
import { isOpenHandoff } from './handoff.ts';
import { notActive } from './rejections.ts';

/**
 * Decides a command of the session's hand-off. A session has one open hand-off at most. Only the
 * person who took it gives it back; until it is taken, every member may close it.
 */
export function decideHandoff(
  command: HandoffCommand,
  session: SessionState,
): SessionEvent[] | Rejection {
  if (command.type === 'ExpireHandoff') return expire(command.now, session);
  const refusal = notActive(session);
  if (refusal !== null) return refusal;
  const { handoff } = session;
  const isOpen = isOpenHandoff(handoff) && command.now < Date.parse(handoff.expiresAt);
  if (command.type === 'RequestHandoff') {
    // A request that is repeated has the same id.
    if (handoff?.id === command.handoffId) return [];
    return isOpen ? conflict(session, handoff) : request(command, session);
  }
  const { handoffId, by } = command;
  if (handoff?.id !== handoffId)
    return reject('HANDOFF_NOT_FOUND', { session_id: session.id, handoff_id: handoffId });
  const isRepeat =
    command.type === 'TakeHandoff'
      ? handoff.status === 'taken' && handoff.takenBy === by
      : handoff.status === 'completed' && handoff.success === command.success;
  if (isRepeat) return [];
  const isAnothers = handoff.status === 'taken' && handoff.takenBy !== by;
  if (!isOpen || isAnothers) return conflict(session, handoff);
  const at = iso(command.now);
  if (command.type === 'TakeHandoff')
    return [{ type: 'session.handoff-taken', data: { handoffId, by, at } }];
  const { success, note } = command;
  return [{ type: 'session.handoff-completed', data: { handoffId, by, at, success, note } }];
}

/** A hand-off whose timer is late is expired first: a session has one at a time. */
function request(
  { handoffId, instructions, timeoutMs, by, now }: RequestHandoff,
  session: SessionState,
): SessionEvent[] {
  const expiresAt = iso(now + timeoutMs);
  const data = { handoffId, instructions, by, at: iso(now), expiresAt };
  return [...expire(now, session), { type: 'session.handoff-requested', data }];
}
type RequestHandoff = Extract<HandoffCommand, { type: 'RequestHandoff' }>;

/** A timer that fires early, or for a hand-off that has ended, changes nothing. */
function expire(now: number, { handoff, status }: SessionState): SessionEvent[] {
  if (status !== 'active' || !isOpenHandoff(handoff)) return [];
  if (now < Date.parse(handoff.expiresAt)) return [];
  return [{ type: 'session.handoff-expired', data: { handoffId: handoff.id, at: iso(now) } }];
}

function conflict({ id }: SessionState, handoff: Handoff): Rejection {
  const { id: handoffId, status, takenBy = null } = handoff;
  const context = { session_id: id, handoff_id: handoffId, status, taken_by: takenBy };
  return reject('HANDOFF_CONFLICT', context);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
