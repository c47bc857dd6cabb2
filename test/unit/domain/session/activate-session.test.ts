import { describe, it } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
  browser,
  failed,
  iso,
  MINUTE,
  queued,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const startedAtMs = T0 + 300;
const activate = { type: 'ActivateSession', workload: browser(), now: startedAtMs } as const;

describe('a browser that answers for a session', () => {
  it('makes it active and starts its billing', () => {
    given(requested()).when(activate).then(activated(startedAtMs));
    given(requested(), activated(startedAtMs)).stateIs({
      status: 'active',
      workload: browser(),
      startedAt: iso(startedAtMs),
      assignment: null,
    });
  });

  it('makes it active from the queue, and after an assignment', () => {
    given(requested(), queued).when(activate).then(activated(startedAtMs));
    given(requested(), assigned()).when(activate).then(activated(startedAtMs));
  });

  it('leaves the expiry of the request unchanged', () => {
    given(requested(), activated(T0 + 10 * MINUTE)).stateIs({ expiresAt: iso(T0 + 120 * MINUTE) });
  });

  it('has no effect when reported twice', () => {
    given(requested(), activated()).when(activate).thenNothing();
  });
});

describe('a browser that answers too late', () => {
  it('is refused when another browser serves the session, so that it is ended', () => {
    given(requested(), activated(T0, browser('wl_2')))
      .when(activate)
      .thenRejected('SESSION_NOT_ACTIVE', { session_id: 'ses_1', status: 'active' });
  });

  it('is refused when another server has accepted the session', () => {
    given(requested(), assigned('wl_2', 'srv_2'))
      .when(activate)
      .thenRejected('SESSION_NOT_ACTIVE', { session_id: 'ses_1', status: 'creating' });
  });

  it('is refused when the session is ending or has ended', () => {
    given(requested(), activated(), stopRequested())
      .when(activate)
      .thenRejected('SESSION_NOT_ACTIVE', { session_id: 'ses_1', status: 'stopping' });
    given(requested(), stopRequested(), stopped(T0))
      .when(activate)
      .thenRejected('SESSION_NOT_ACTIVE', { session_id: 'ses_1', status: 'stopped' });
    given(requested(), failed())
      .when(activate)
      .thenRejected('SESSION_NOT_ACTIVE', { session_id: 'ses_1', status: 'failed' });
  });
});
