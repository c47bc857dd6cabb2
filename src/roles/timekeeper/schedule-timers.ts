import type { EventWithState } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import type { TimerKind } from '#events/subjects.ts';
import { EXPIRY_WARNING_MS, idleAt } from '#src/kernel/domain/session/decide.ts';
import { handoffEndsAt } from '#src/kernel/domain/session/handoff.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';

/** A change of a session's timers: set one at a time (ms since the epoch), or cancel all. */
export type TimerStep = { kind: TimerKind; at: number } | 'cancel-all';

/** When a session that no server has accepted is queued and when it fails, in ms after creation. */
type QueueTimes = { afterMs: number; timeoutMs: number };

/** Event → timers. Pure. Setting a timer twice does no harm, so events may be redelivered. */
export function timersAfter(event: EventWithState<'session'>, queue: QueueTimes): TimerStep[] {
  const { state } = event;
  if (isFinal(state.status)) return ['cancel-all'];
  const expiry = { kind: 'expiry', at: Date.parse(state.expiresAt) } as const;
  if (event.type === 'session.requested') {
    const createdAt = Date.parse(state.createdAt);
    return [
      expiry,
      { kind: 'queue-after', at: createdAt + queue.afterMs },
      { kind: 'queue-timeout', at: createdAt + queue.timeoutMs },
    ];
  }
  if (event.type === 'session.requeued')
    return [{ kind: 'queue-timeout', at: Date.parse(state.createdAt) + queue.timeoutMs }];
  const warning = { kind: 'expiry-warning', at: expiry.at - EXPIRY_WARNING_MS } as const;
  if (event.type === 'session.extended')
    return state.status === 'active' ? [expiry, warning] : [expiry];
  if (event.type === 'session.handoff-requested')
    return [{ kind: 'handoff', at: Date.parse(event.data.expiresAt) }];
  if (event.type !== 'session.activated') return [];
  const idle = idleAt(state);
  return idle === null ? [warning] : [warning, { kind: 'idle', at: idle }];
}

/**
 * The timers that a session in this state needs and that are due later than now, with the expiry
 * warning. Pure.
 */
export function upcomingTimersOf(session: SessionState, queue: QueueTimes, now: number) {
  const timers = timersOf(session, queue);
  if (session.status === 'active' && session.expiryWarnedFor !== session.expiresAt) {
    const at = Date.parse(session.expiresAt) - EXPIRY_WARNING_MS;
    timers.push({ kind: 'expiry-warning', at });
  }
  return timers.filter(({ at }) => at > now);
}

/**
 * The timers that a session in this state needs, with the time when each is due, past or future.
 * Pure. The expiry comes first, because it ends the session and makes the others void. The expiry
 * warning is not included: a late one comes with the end.
 */
export function timersOf(
  session: SessionState,
  queue: QueueTimes,
): { kind: TimerKind; at: number }[] {
  if (isFinal(session.status) || session.status === 'stopping') return [];
  const expiresAt = Date.parse(session.expiresAt);
  const timers: { kind: TimerKind; at: number }[] = [{ kind: 'expiry', at: expiresAt }];
  if (session.status === 'active') {
    const idle = idleAt(session);
    if (idle !== null) timers.push({ kind: 'idle', at: idle });
    const handoff = handoffEndsAt(session);
    if (handoff !== null) timers.push({ kind: 'handoff', at: handoff });
  } else if (session.assignment === null) {
    const createdAt = Date.parse(session.createdAt);
    if (session.status === 'creating')
      timers.push({ kind: 'queue-after', at: createdAt + queue.afterMs });
    timers.push({ kind: 'queue-timeout', at: createdAt + queue.timeoutMs });
  }
  return timers;
}
