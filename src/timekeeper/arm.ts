import { isOf, type RecordedEvent } from '#events/events.ts';
import type { TimerKind } from '#events/subjects.ts';
import { EXPIRY_WARNING_MS, idleAt } from '../session/decide.ts';
import { isFinal } from '../session/session.ts';

/** What is to be done with a session's timers after one of its events. */
export type TimerStep = { kind: TimerKind; at: number } | 'cancel-all';

/** Event → timers. Pure; arming twice is harmless, so events may come again. */
export function timersAfter(
  event: RecordedEvent,
  queue: { afterMs: number; timeoutMs: number },
): TimerStep[] {
  if (!isOf('session', event)) return [];
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
  if (event.type !== 'session.activated') return [];
  const idle = idleAt(state);
  return idle === null ? [warning] : [warning, { kind: 'idle', at: idle }];
}
