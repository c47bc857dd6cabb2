import { describe, it } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  createSession,
  iso,
  MINUTE,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;

describe('creating a session', () => {
  it('records the request, the expiry and the reserved credits', () => {
    given().when(createSession()).then(requested());
  });

  it('sets the expiry to the request’s time plus the duration, and reserves a credit per minute', () => {
    given()
      .when(createSession({ durationMs: 30 * MINUTE }))
      .then(requested({ expiresAt: iso(T0 + 30 * MINUTE), creditsReserved: 30 }));
  });

  it('starts in status creating, without a browser', () => {
    given(requested()).stateIs({
      id: 'ses_1',
      organizationId: 'org_acme',
      status: 'creating',
      workload: null,
      assignment: null,
      startedAt: null,
      lastAccessedAt: null,
      endedReason: null,
    });
  });
});

describe('creating with an Idempotency-Key', () => {
  const once = requested({ fingerprint: 'f1' });

  it('changes nothing when the same request comes again', () => {
    given(once)
      .when(createSession({ fingerprint: 'f1', now: T0 + MINUTE }))
      .thenNothing();
  });

  it('returns the same session even after its end', () => {
    given(once, activated(), stopRequested(), stopped(T0 + MINUTE, 1))
      .when(createSession({ fingerprint: 'f1' }))
      .thenNothing();
  });

  it('is rejected if the request differs', () => {
    given(once)
      .when(createSession({ fingerprint: 'f2' }))
      .thenRejected('IDEMPOTENCY_CONFLICT', { session_id: 'ses_1' });
  });

  it('is rejected for an id that was created without a key', () => {
    given(requested()).when(createSession()).thenRejected('IDEMPOTENCY_CONFLICT');
  });
});
