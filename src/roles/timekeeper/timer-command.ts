import type { SessionState } from '#events/session.ts';
import type { TimerKind } from '#events/subjects.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { EXPIRY_WARNING_MS, idleAt } from '#src/kernel/domain/session/decide.ts';
import { handoffEndsAt } from '#src/kernel/domain/session/handoff.ts';
import { isAwaitingServer, isFinal } from '#src/kernel/domain/session/session.ts';

/** What a timer's decision depends on beside the session. */
type TimerTimes = { now: number; queueTimeoutMs: number };
/** `firedAt`: when the timer fired, by the clock of NATS; null: it did not. */
type FiredTimes = TimerTimes & { firedAt: number | null };

/** Fired timer → command. The command decides whether the time has come. */
export function timerCommand(kind: TimerKind, { now, queueTimeoutMs }: TimerTimes): SessionCommand {
  switch (kind) {
    case 'queue-after':
      return { type: 'QueueSession', now };
    case 'queue-timeout':
      return { type: 'FailQueuedSession', queueTimeoutMs, now };
    case 'expiry':
      return { type: 'ExpireSession', now };
    case 'idle':
      return { type: 'StopIdleSession', now };
    case 'handoff':
      return { type: 'ExpireHandoff', now };
    case 'expiry-warning':
      return { type: 'WarnOfExpiry', now };
  }
}

/** The shortest time after which a timer fires again. */
const AGAIN_MIN_MS = 1_000;

/**
 * When a timer that fired too early has to fire again (ms since the epoch); null: never. NATS fires
 * by its own clock: if that is ahead of this process, a timer that is set for its time fires at
 * once, and again at once, until the clocks agree that it is due. So at least a second passes by
 * either clock.
 */
export function rescheduleAt(
  kind: TimerKind,
  session: SessionState,
  { now, queueTimeoutMs, firedAt }: FiredTimes,
): number | null {
  const at =
    kind === 'queue-timeout' ? queueTimeoutAt(session, queueTimeoutMs) : dueAt(kind, session, now);
  return at === null ? null : Math.max(at, Math.max(now, firedAt ?? now) + AGAIN_MIN_MS);
}

function queueTimeoutAt(session: SessionState, queueTimeoutMs: number): number | null {
  return isAwaitingServer(session) ? Date.parse(session.createdAt) + queueTimeoutMs : null;
}

function dueAt(kind: TimerKind, session: SessionState, now: number): number | null {
  if (isFinal(session.status) || session.status === 'stopping') return null;
  const expiresAt = Date.parse(session.expiresAt);
  if (kind === 'expiry') return expiresAt;
  if (kind === 'idle') return idleAt(session);
  if (kind === 'handoff') return handoffEndsAt(session);
  if (kind !== 'expiry-warning') return null;
  // From the end on it is too late for a warning.
  const isWarned = session.expiryWarnedFor === session.expiresAt || now >= expiresAt;
  return isWarned ? null : expiresAt - EXPIRY_WARNING_MS;
}
