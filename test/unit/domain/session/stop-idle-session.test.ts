import { describe, expect, it } from 'vitest';
import type { SessionEvent, SessionState } from '#events/session.ts';
import { idleAt } from '#src/kernel/domain/session/decide.ts';
import { foldAll, session, sessionRef } from '#test/support/given-when-then.ts';
import {
  accessed,
  activated,
  handedOff,
  MINUTE,
  queued,
  requested,
  SECOND,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const idleTimeoutMs = 10 * MINUTE;
const started = T0 + 2 * SECOND;
/** Use is recorded once a minute, so the last record may be that much older than the last use. */
const slackMs = MINUTE;

function idle(now: number) {
  return { type: 'StopIdleSession', now } as const;
}

describe('a session with an idle timeout', () => {
  const unused = [requested({ idleTimeoutMs }), activated(started)];
  const used = [...unused, accessed(started + 5 * MINUTE, 'cdp')];

  it('is not stopped while a hand-off is open', () => {
    const [asked, taken, completed] = handedOff;
    const end = Date.parse(asked.data.expiresAt);
    const waiting = [requested({ idleTimeoutMs: MINUTE }), activated(started), asked];
    for (const events of [waiting, [...waiting, taken]]) {
      given(...events)
        .when(idle(end - 1))
        .thenNothing();
      expect(idleAtAfter(...events)).toBe(end);
    }
    expect(idleAtAfter(...waiting, taken, completed)).toBeLessThan(end);
  });

  it('is stopped if it was not used since its start', () => {
    given(...unused)
      .when(idle(started + idleTimeoutMs + slackMs))
      .then(stopRequested('idle', started + idleTimeoutMs + slackMs));
  });

  it('gets an extra minute, in which use may go unrecorded', () => {
    given(...unused)
      .when(idle(started + idleTimeoutMs))
      .thenNothing();
    given(...unused)
      .when(idle(started + idleTimeoutMs + slackMs - 1))
      .thenNothing();
  });

  it('counts from its last use', () => {
    given(...used)
      .when(idle(started + idleTimeoutMs + slackMs))
      .thenNothing();
    given(...used)
      .when(idle(started + 5 * MINUTE + idleTimeoutMs + slackMs))
      .then(stopRequested('idle', started + 5 * MINUTE + idleTimeoutMs + slackMs));
  });

  it('is stopped once', () => {
    given(...used, stopRequested('idle'))
      .when(idle(started + 60 * MINUTE))
      .thenNothing();
  });

  it('is not idle while it waits for its browser', () => {
    given(requested({ idleTimeoutMs }))
      .when(idle(T0 + 60 * MINUTE))
      .thenNothing();
    given(requested({ idleTimeoutMs }), queued)
      .when(idle(T0 + 60 * MINUTE))
      .thenNothing();
  });
});

describe('a session without an idle timeout', () => {
  it('is never idle', () => {
    given(requested(), activated())
      .when(idle(T0 + 100 * MINUTE))
      .thenNothing();
  });
});

describe('the time of the idle timer', () => {
  it('is when the session is stopped', () => {
    const moment = started + idleTimeoutMs + slackMs;
    expect(idleAtAfter(requested({ idleTimeoutMs }), activated(started))).toBe(moment);
  });

  it('moves with each use', () => {
    const events = [requested({ idleTimeoutMs }), activated(started), accessed(started + MINUTE)];
    expect(idleAtAfter(...events)).toBe(started + MINUTE + idleTimeoutMs + slackMs);
  });

  it('is null before the start, after the end and without an idle timeout', () => {
    expect(idleAtAfter(requested({ idleTimeoutMs }))).toBeNull();
    expect(idleAtAfter(requested(), activated())).toBeNull();
    expect(idleAtAfter(requested({ idleTimeoutMs }), activated(), stopRequested())).toBeNull();
  });
});

function idleAtAfter(...events: SessionEvent[]): number | null {
  return idleAt(foldAll<'session'>(sessionRef, null, events) as SessionState);
}
