import { describe, it } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
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
const queue = { type: 'QueueSession', now: T0 + 1000 } as const;
const queueTimeoutMs = 5 * MINUTE;

function timeOut(now: number) {
  return { type: 'FailQueuedSession', queueTimeoutMs, now } as const;
}

describe('a session that no server accepted at once', () => {
  it('is queued', () => {
    given(requested()).when(queue).then(queued);
    given(requested(), queued).stateIs({ status: 'queued' });
  });

  it('is queued once, however often the timer fires', () => {
    given(requested(), queued).when(queue).thenNothing();
  });

  it('is not queued when a server is launching a browser for it', () => {
    given(requested(), assigned()).when(queue).thenNothing();
  });

  it('is not queued when it is active or has ended', () => {
    given(requested(), activated()).when(queue).thenNothing();
    given(requested(), stopRequested(), stopped(T0)).when(queue).thenNothing();
  });

  it('is rejected if it does not exist', () => {
    given().when(queue).thenRejected('SESSION_NOT_FOUND');
  });
});

describe('a session that waits longer than the queue time-out', () => {
  const timedOut = failed({
    reason: 'queue_timeout',
    detail: 'no server had room for it in time',
    exitCode: null,
    endedAt: iso(T0 + queueTimeoutMs),
    creditsUsed: 0,
    creditsRefunded: 120,
  });

  it('fails and gets all credits back', () => {
    given(requested(), queued)
      .when(timeOut(T0 + queueTimeoutMs))
      .then(timedOut);
  });

  it('fails even if the timer of queueing was lost', () => {
    given(requested())
      .when(timeOut(T0 + queueTimeoutMs))
      .then(timedOut);
  });

  it('keeps waiting if the timer fires early', () => {
    given(requested(), queued)
      .when(timeOut(T0 + queueTimeoutMs - 1))
      .thenNothing();
  });

  it('does not fail if a server accepted it just before', () => {
    given(requested(), queued, assigned())
      .when(timeOut(T0 + queueTimeoutMs))
      .thenNothing();
    given(requested(), queued, activated())
      .when(timeOut(T0 + queueTimeoutMs))
      .thenNothing();
  });

  it('fails once, however often the timer fires', () => {
    given(requested(), queued, timedOut)
      .when(timeOut(T0 + 2 * queueTimeoutMs))
      .thenNothing();
  });
});
