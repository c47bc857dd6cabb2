import type { SessionState } from '#events/session.ts';
import type { TimerKind } from '#events/subjects.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { EXPIRY_WARNING_MS, idleAt } from '#src/domain/session/decide.ts';
import { isFinal } from '#src/domain/session/session.ts';

/** A timer that fired → the command that decides whether its moment has really come. */
export function commandFor(kind: TimerKind, now: number, queueTimeoutMs: number): SessionCommand {
  switch (kind) {
    case 'queue-after':
      return { type: 'QueueSession', now };
    case 'queue-timeout':
      return { type: 'FailQueuedSession', queueTimeoutMs, now };
    case 'expiry':
      return { type: 'ExpireSession', now };
    case 'idle':
      return { type: 'StopIdleSession', now };
    case 'expiry-warning':
      return { type: 'WarnOfExpiry', now };
  }
}

/** When a timer that fired before its moment has to fire again; null: never. */
export function rearmAt(kind: TimerKind, session: SessionState, now: number): number | null {
  if (isFinal(session.status) || session.status === 'stopping') return null;
  const expiresAt = Date.parse(session.expiresAt);
  if (kind === 'expiry') return Math.max(expiresAt, now);
  if (kind === 'expiry-warning')
    return session.expiryWarnedFor === session.expiresAt ? null : expiresAt - EXPIRY_WARNING_MS;
  return kind === 'idle' ? idleAt(session) : null;
}
