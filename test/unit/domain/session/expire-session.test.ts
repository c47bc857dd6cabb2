import { describe, it } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  extended,
  failed,
  HOUR,
  queued,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const expiresAtMs = T0 + 2 * HOUR;

function expire(now: number) {
  return { type: 'ExpireSession', now } as const;
}

describe('the expiry timer', () => {
  it('stops an active session at its expiry', () => {
    given(requested(), activated())
      .when(expire(expiresAtMs))
      .then(stopRequested('expired', expiresAtMs));
  });

  it('stops it when it fires late', () => {
    given(requested(), activated())
      .when(expire(expiresAtMs + 5000))
      .then(stopRequested('expired', expiresAtMs + 5000));
  });

  it('does nothing when it fires early', () => {
    given(requested(), activated())
      .when(expire(expiresAtMs - 1))
      .thenNothing();
  });

  it('does nothing when the session was extended meanwhile', () => {
    given(requested(), activated(), extended(HOUR, T0 + 3 * HOUR))
      .when(expire(expiresAtMs))
      .thenNothing();
  });

  it('does nothing the second time', () => {
    given(requested(), activated(), stopRequested('expired'))
      .when(expire(expiresAtMs + 1))
      .thenNothing();
  });

  it('does nothing to a session that has ended', () => {
    given(requested(), failed()).when(expire(expiresAtMs)).thenNothing();
    given(requested(), stopRequested(), stopped(T0)).when(expire(expiresAtMs)).thenNothing();
  });

  it('ends a session that never got a browser at once', () => {
    given(requested(), queued)
      .when(expire(expiresAtMs))
      .then(stopRequested('expired', expiresAtMs), stopped(expiresAtMs, 0, 'expired'));
  });
});
