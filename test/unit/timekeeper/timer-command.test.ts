import { describe, expect, it } from 'vitest';
import type { SessionEvent } from '#events/session.ts';
import type { TimerKind } from '#events/subjects.ts';
import { rescheduleAt } from '#src/roles/timekeeper/timer-command.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
  handedOff,
  HOUR,
  MINUTE,
  queued,
  requested,
  SECOND,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const END = T0 + 2 * HOUR;
const queueTimeoutMs = 5 * MINUTE;

function rescheduled(kind: TimerKind, now: number, ...events: SessionEvent[]): number | null {
  const state = foldAll<'session'>(sessionRef, null, events);
  if (state === null) throw new Error('no session');
  return rescheduleAt(kind, state, { now, queueTimeoutMs, firedAt: now });
}

describe('a timer that fired too early, by the clock of a timekeeper that is behind NATS’', () => {
  const idle = [requested({ idleTimeoutMs: 5 * MINUTE }), activated()];

  it('is set again for its time', () => {
    const [asked, taken, completed] = handedOff;
    for (const open of [[asked], [asked, taken]])
      expect(rescheduled('handoff', T0 + 7 * MINUTE, requested(), activated(), ...open)).toBe(
        T0 + 16 * MINUTE,
      );
    expect(rescheduled('handoff', T0, requested(), activated(), ...handedOff)).toBeNull();
    expect(completed.data.handoffId).toBe(asked.data.handoffId);
    const now = T0 + SECOND;
    expect(rescheduled('expiry', now, requested(), activated())).toBe(END);
    expect(rescheduled('expiry-warning', now, requested(), activated())).toBe(END - MINUTE);
    expect(rescheduled('idle', now, ...idle)).toBe(T0 + 6 * MINUTE);
    expect(rescheduled('queue-timeout', now, requested(), queued)).toBe(T0 + queueTimeoutMs);
  });

  it.each([
    ['expiry', END, [requested(), activated()]],
    ['expiry-warning', END - MINUTE, [requested(), activated()]],
    ['idle', T0 + 6 * MINUTE, idle],
    ['queue-timeout', T0 + queueTimeoutMs, [requested(), queued]],
  ] as const)('is set again for a second later at the earliest: %s', (kind, due, events) => {
    for (const now of [due - SECOND, due - 1, due])
      expect(rescheduled(kind, now, ...events)).toBe(now + SECOND);
  });

  it.each([2 * SECOND, MINUTE, HOUR])(
    'is set again for a second later by the clock of NATS, which is %d ms ahead',
    (aheadMs) => {
      const state = foldAll<'session'>(sessionRef, null, [requested(), activated()]);
      if (state === null) throw new Error('no session');
      // Each time the timer fires at once: NATS is past the session's end.
      for (const firedAt of [END, END + SECOND, END + 2 * SECOND]) {
        const times = { now: firedAt - aheadMs, queueTimeoutMs, firedAt };
        expect(rescheduleAt('expiry', state, times)).toBe(firedAt + SECOND);
      }
    },
  );

  it('is not set again if the session needs it no more', () => {
    const stopping = [requested(), activated(), stopRequested()];
    for (const kind of ['expiry', 'expiry-warning', 'idle', 'queue-timeout'] as const)
      expect(rescheduled(kind, T0, ...stopping)).toBeNull();
    expect(rescheduled('queue-timeout', T0, requested(), assigned())).toBeNull();
    expect(rescheduled('queue-after', T0, requested())).toBeNull();
    expect(rescheduled('idle', T0, requested(), activated())).toBeNull();
  });

  it('is not set again for a warning of an end that has passed', () => {
    for (const now of [END, END + HOUR])
      expect(rescheduled('expiry-warning', now, requested(), activated())).toBeNull();
  });
});
