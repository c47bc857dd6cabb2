import { describe, it, test } from 'vitest';
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
const now = T0 + 5 * MINUTE;
const crash = {
  type: 'FailSession',
  reason: 'browser_crashed',
  detail: 'exit code 139',
  exitCode: 139,
  now,
} as const;
const gone = { reason: crash.reason, detail: crash.detail, exitCode: 139, endedAt: iso(now) };

describe('a session whose browser is lost', () => {
  it('fails with the reason, the exit code and a bill for the time it ran', () => {
    given(requested(), activated(T0 + MINUTE))
      .when(crash)
      .then(failed({ ...gone, creditsUsed: 4, creditsRefunded: 116 }));
  });

  test.each(['launch_failed', 'browser_crashed', 'out_of_memory', 'server_lost'] as const)(
    'may fail by %s',
    (reason) => {
      given(requested(), assigned())
        .when({ ...crash, reason })
        .then(failed({ ...gone, reason, creditsUsed: 0, creditsRefunded: 120 }));
    },
  );

  it('fails from the queue as well', () => {
    given(requested(), queued).when(crash).then(failed(gone));
  });

  it('fails while it is stopping, since its end cannot be confirmed any more', () => {
    given(requested(), activated(), stopRequested('user', T0 + MINUTE))
      .when({ ...crash, reason: 'server_lost' })
      .then(failed({ ...gone, reason: 'server_lost', creditsUsed: 1, creditsRefunded: 119 }));
  });
});

describe('a late report of a failure', () => {
  it('changes nothing once the session has ended', () => {
    given(requested(), failed()).when(crash).thenNothing();
    given(requested(), stopRequested(), stopped(T0)).when(crash).thenNothing();
  });

  it('changes nothing once the session is another server’s', () => {
    const late = { ...crash, serverId: 'srv_2' };
    given(requested(), assigned('wl_1', 'srv_1')).when(late).thenNothing();
    given(requested(), activated()).when(late).thenNothing();
    given(requested(), activated(), stopRequested()).when(late).thenNothing();
  });

  it('counts for the session of the server that reports it, and for one of no server', () => {
    const own = { ...crash, serverId: 'srv_1' };
    given(requested(), assigned('wl_1', 'srv_1')).when(own).then(failed(gone));
    given(requested(), activated(T0 + MINUTE))
      .when(own)
      .then(failed({ ...gone, creditsUsed: 4, creditsRefunded: 116 }));
    given(requested(), queued).when(own).then(failed(gone));
  });

  it('is rejected for a session that does not exist', () => {
    given().when(crash).thenRejected('SESSION_NOT_FOUND');
  });
});
