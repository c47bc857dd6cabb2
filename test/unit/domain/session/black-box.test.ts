import { describe, expect, it } from 'vitest';
import type { BlackBox } from '#events/session/black-box.ts';
import type { SessionEvent } from '#events/session.ts';
import { evolve } from '#src/kernel/domain/session/session.ts';
import { session, sessionRef } from '#test/support/given-when-then.ts';
import {
  activated,
  failed,
  iso,
  MINUTE,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const now = T0 + 5 * MINUTE;
const blackBox: BlackBox = {
  address: 'https://shop.test/pay',
  exceptions: [{ at: iso(T0 + MINUTE), text: 'TypeError: boom' }],
  signal: 'SIGKILL',
};
const crash = {
  type: 'FailSession',
  reason: 'browser_crashed',
  detail: 'killed by SIGKILL',
  exitCode: null,
  now,
} as const;
const crashed = { reason: crash.reason, detail: crash.detail, exitCode: null, endedAt: iso(now) };
const used = { creditsUsed: 5, creditsRefunded: 115 };

/** The event of an end with what the browser told. */
function withBox(event: SessionEvent): SessionEvent {
  return { ...event, data: { ...event.data, blackBox } } as SessionEvent;
}

describe('what a browser told before the end', () => {
  it('is in the event of a stop', () => {
    given(requested(), activated(), stopRequested('user', now))
      .when({ type: 'ConfirmStopped', blackBox, now })
      .then(withBox(stopped(now, 5)));
  });

  it('is in the event of a stop that the user made by closing the browser', () => {
    given(requested(), activated())
      .when({ type: 'ReportBrowserClosed', closedAt: now, blackBox, now })
      .then(stopRequested('browser_closed', now), withBox(stopped(now, 5, 'browser_closed')));
  });

  it('is in the event of a failure, and not in the state after it', () => {
    given(requested(), activated())
      .when({ ...crash, blackBox })
      .then(withBox(failed({ ...crashed, ...used })));
    const state = evolve(null, requested(), sessionRef);
    expect(evolve(state, withBox(failed(crashed)), sessionRef)).not.toHaveProperty('blackBox');
  });

  it('is left out where the session was requested without', () => {
    const unwanted = requested({ blackBox: false });
    given(unwanted, activated())
      .when({ ...crash, blackBox })
      .then(failed({ ...crashed, ...used }));
    given(unwanted, activated(), stopRequested('user', now))
      .when({ type: 'ConfirmStopped', blackBox, now })
      .then(stopped(now, 5));
  });
});
