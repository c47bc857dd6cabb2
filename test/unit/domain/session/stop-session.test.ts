import { describe, it, test } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
  browser,
  failed,
  HOUR,
  MINUTE,
  queued,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const now = T0 + 90_000;
const stop = { type: 'StopSession', reason: 'user', now } as const;
const confirm = { type: 'ConfirmStopped', now } as const;

describe('stopping a session with a browser', () => {
  test.each(['user', 'organization', 'operator'] as const)('is asked for by the %s', (reason) => {
    given(requested(), activated())
      .when({ ...stop, reason })
      .then(stopRequested(reason, now));
  });

  it('keeps the browser in sight until it is gone', () => {
    given(requested(), activated(), stopRequested()).stateIs({
      status: 'stopping',
      workload: browser(),
      endedReason: 'user',
      endedAt: null,
    });
  });

  it('is done when the browser is gone, for the reason it was asked for', () => {
    given(requested(), activated(), stopRequested('operator', now))
      .when(confirm)
      .then(stopped(now, 2, 'operator'));
  });
});

describe('stopping a session without a browser', () => {
  const atOnce = [stopRequested('user', now), stopped(now)];

  it('ends it at once and gives everything back', () => {
    given(requested())
      .when(stop)
      .then(...atOnce);
    given(requested(), queued)
      .when(stop)
      .then(...atOnce);
    given(requested(), ...atOnce).stateIs({ status: 'stopped', creditsUsed: 0 });
  });

  it('does not wait for a browser that is being launched', () => {
    given(requested(), assigned())
      .when(stop)
      .then(...atOnce);
    given(requested(), assigned(), ...atOnce).stateIs({ assignment: null, workload: null });
  });
});

describe('stopping again', () => {
  it('changes nothing while the session is stopping', () => {
    given(requested(), activated(), stopRequested()).when(stop).thenNothing();
  });

  it('changes nothing when it has ended', () => {
    given(requested(), activated(), stopRequested(), stopped(now, 2)).when(stop).thenNothing();
    given(requested(), failed()).when(stop).thenNothing();
  });

  it('does not change the reason', () => {
    given(requested(), activated(), stopRequested('expired'))
      .when({ ...stop, reason: 'operator' })
      .thenNothing();
  });

  it('of a session that never was is refused', () => {
    given().when(stop).thenRejected('SESSION_NOT_FOUND');
  });
});

describe('the report that a browser is gone', () => {
  it('ends a stopping session once', () => {
    given(requested(), activated(), stopRequested(), stopped(now, 2)).when(confirm).thenNothing();
  });

  it('means nothing to a session that was not asked to stop', () => {
    given(requested()).when(confirm).thenNothing();
    given(requested(), activated()).when(confirm).thenNothing();
    given(requested(), failed())
      .when({ ...confirm, now: now + MINUTE })
      .thenNothing();
  });
});

describe('the report that its user has closed the browser', () => {
  const closedAt = T0 + MINUTE + 1;
  const close = { type: 'ReportBrowserClosed', closedAt, now: T0 + 10 * MINUTE } as const;

  it('stops the session at once, billed until the close and not until the report', () => {
    given(requested(), activated())
      .when(close)
      .then(stopRequested('browser_closed', closedAt), stopped(close.now, 2, 'browser_closed'));
  });

  it('bills nothing before the start, and nothing after the report, whatever its clock said', () => {
    given(requested(), activated(T0 + 5 * MINUTE))
      .when({ ...close, closedAt: T0 })
      .then(
        stopRequested('browser_closed', T0 + 5 * MINUTE),
        stopped(close.now, 0, 'browser_closed'),
      );
    given(requested(), activated())
      .when({ ...close, closedAt: T0 + HOUR })
      .then(stopRequested('browser_closed', close.now), stopped(close.now, 10, 'browser_closed'));
  });

  it('ends a session that never was active, which pays nothing', () => {
    given(requested(), assigned())
      .when(close)
      .then(stopRequested('browser_closed', closedAt), stopped(close.now, 0, 'browser_closed'));
  });

  it('leaves a session that is stopping the reason and the bill of its stop', () => {
    given(requested(), activated(), stopRequested('user', T0 + MINUTE))
      .when(close)
      .then(stopped(close.now, 1, 'user'));
  });

  it('changes nothing once the session has ended', () => {
    given(requested(), failed()).when(close).thenNothing();
    given(requested(), activated(), stopRequested(), stopped(now, 2)).when(close).thenNothing();
  });
});
