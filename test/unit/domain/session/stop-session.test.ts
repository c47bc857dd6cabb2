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
  requeued,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const now = T0 + 90_000;
const stop = { type: 'StopSession', reason: 'user', now } as const;
const confirm = { type: 'ConfirmStopped', now } as const;

describe('stopping a session only if it is what was meant', () => {
  it('leaves a session in another status alone', () => {
    given(requested(), activated())
      .when({ ...stop, onlyIf: { status: 'queued' } })
      .thenNothing();
    given(requested(), activated())
      .when({ ...stop, onlyIf: { status: 'active' } })
      .then(stopRequested('user', now));
  });

  it('leaves a session alone that lacks one of the labels', () => {
    const updated = {
      type: 'session.updated',
      data: { labels: { team: 'web', run: '1' } },
    } as const;
    for (const labels of [{ team: 'shop' }, { team: 'web', run: '2' }, { team: 'web', more: '' }])
      given(requested(), activated(), updated)
        .when({ ...stop, onlyIf: { labels } })
        .thenNothing();
    given(requested(), activated(), updated)
      .when({ ...stop, onlyIf: { labels: { team: 'web' } } })
      .then(stopRequested('user', now));
  });
});

describe('stopping a session with a browser', () => {
  test.each(['user', 'organization', 'operator'] as const)('is requested by the %s', (reason) => {
    given(requested(), activated())
      .when({ ...stop, reason })
      .then(stopRequested(reason, now));
  });

  it('keeps the browser until it has ended', () => {
    given(requested(), activated(), stopRequested()).stateIs({
      status: 'stopping',
      workload: browser(),
      endedReason: 'user',
      endedAt: null,
    });
  });

  it('is complete when the browser has ended, with the reason of the request', () => {
    given(requested(), activated(), stopRequested('operator', now))
      .when(confirm)
      .then(stopped(now, 2, 'operator'));
  });
});

describe('stopping a session without a browser', () => {
  const atOnce = [stopRequested('user', now), stopped(now)];

  it('ends it at once and refunds all credits', () => {
    given(requested())
      .when(stop)
      .then(...atOnce);
    given(requested(), queued)
      .when(stop)
      .then(...atOnce);
    given(requested(), ...atOnce).stateIs({ status: 'stopped', creditsUsed: 0 });
  });

  it('does not wait for a browser that is being launched, and charges one credit for it', () => {
    const charged = [stopRequested('user', now), stopped(now, 1)];
    given(requested(), assigned())
      .when(stop)
      .then(...charged);
    given(requested(), assigned(), ...charged).stateIs({
      assignment: null,
      workload: null,
      creditsUsed: 1,
    });
  });

  it('charges nothing for a server that could not launch a browser', () => {
    given(requested(), assigned(), requeued)
      .when(stop)
      .then(...atOnce);
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

  it('is rejected if the session does not exist', () => {
    given().when(stop).thenRejected('SESSION_NOT_FOUND');
  });
});

describe('the report that a browser has ended', () => {
  it('ends a stopping session once', () => {
    given(requested(), activated(), stopRequested(), stopped(now, 2)).when(confirm).thenNothing();
  });

  it('changes nothing in a session without a request to stop', () => {
    given(requested()).when(confirm).thenNothing();
    given(requested(), activated()).when(confirm).thenNothing();
    given(requested(), failed())
      .when({ ...confirm, now: now + MINUTE })
      .thenNothing();
  });
});

describe('the report that the user has closed the browser', () => {
  const closedAt = T0 + MINUTE + 1;
  const close = { type: 'ReportBrowserClosed', closedAt, now: T0 + 10 * MINUTE } as const;

  it('stops the session at once, billed until the close and not until the report', () => {
    given(requested(), activated())
      .when(close)
      .then(stopRequested('browser_closed', closedAt), stopped(close.now, 2, 'browser_closed'));
  });

  it('bills no time before the start or after the report, whatever its clock says', () => {
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

  it('ends a session that never was active, at no cost', () => {
    given(requested(), assigned())
      .when(close)
      .then(stopRequested('browser_closed', closedAt), stopped(close.now, 0, 'browser_closed'));
  });

  it('keeps the reason and the bill of a session that is stopping', () => {
    given(requested(), activated(), stopRequested('user', T0 + MINUTE))
      .when(close)
      .then(stopped(close.now, 1, 'user'));
  });

  it('changes nothing once the session has ended', () => {
    given(requested(), failed()).when(close).thenNothing();
    given(requested(), activated(), stopRequested(), stopped(now, 2)).when(close).thenNothing();
  });
});
