import type { SessionState } from '#events/session.ts';
import type { TimerKind } from '#events/subjects.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { EXPIRY_WARNING_MS, idleAt } from '#src/domain/session/decide.ts';
import { isFinal } from '#src/domain/session/session.ts';

/** Fired timer → command. The command decides whether the time has come. */
export function timerCommand(kind: TimerKind, now: number, queueTimeoutMs: number): SessionCommand {
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

/** When a timer that fired too early has to fire again (ms since the epoch); null: never. */
export function rescheduleAt(kind: TimerKind, session: SessionState, now: number): number | null {
  if (isFinal(session.status) || session.status === 'stopping') return null;
  const expiresAt = Date.parse(session.expiresAt);
  if (kind === 'expiry') return Math.max(expiresAt, now);
  if (kind === 'expiry-warning')
    return session.expiryWarnedFor === session.expiresAt ? null : expiresAt - EXPIRY_WARNING_MS;
  return kind === 'idle' ? idleAt(session) : null;
}
