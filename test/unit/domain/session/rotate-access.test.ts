import { describe, it } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import {
  accessRotated,
  activated,
  assigned,
  failed,
  MINUTE,
  queued,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const rotate = { type: 'RotateAccess', now: T0 + MINUTE } as const;

describe('rotating the access of a session', () => {
  it('begins a new epoch at each call', () => {
    given(requested(), activated())
      .when(rotate)
      .then(accessRotated(1, T0 + MINUTE));
    given(requested(), activated(), accessRotated(1), accessRotated(2))
      .when(rotate)
      .then(accessRotated(3, T0 + MINUTE));
  });

  it('changes the epoch and nothing else', () => {
    given(requested(), activated(), accessRotated(1)).stateIs({
      status: 'active',
      accessEpoch: 1,
      lastAccessedAt: null,
    });
  });

  it('is possible before it has a browser, as its addresses exist from the request on', () => {
    for (const before of [[], [assigned()], [queued]])
      given(requested(), ...before)
        .when(rotate)
        .then(accessRotated(1, T0 + MINUTE));
    given(requested(), accessRotated(1), activated()).stateIs({ accessEpoch: 1 });
  });

  it('is refused once the session is ending or has ended', () => {
    given(requested(), activated(), stopRequested()).when(rotate).thenRejected('SESSION_ENDED', {
      session_id: 'ses_1',
      status: 'stopping',
      ended_reason: 'user',
    });
    given(requested(), stopRequested(), stopped(T0)).when(rotate).thenRejected('SESSION_ENDED', {
      session_id: 'ses_1',
      status: 'stopped',
      ended_reason: 'user',
    });
    given(requested(), failed()).when(rotate).thenRejected('SESSION_ENDED');
  });

  it('is refused for a session that does not exist', () => {
    given().when(rotate).thenRejected('SESSION_NOT_FOUND');
  });
});
