import { describe, it, test } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  egressRecorded,
  extended,
  failed,
  HOUR,
  iso,
  MINUTE,
  requested,
  SECOND,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const startedAtMs = T0 + 10 * SECOND;

function confirmAt(now: number) {
  return { type: 'ConfirmStopped', now } as const;
}

describe('a session is billed for each minute begun since its start', () => {
  test.each([
    ['no time', 0, 0],
    ['a millisecond', 1, 1],
    ['a minute', MINUTE, 1],
    ['a minute and a millisecond', MINUTE + 1, 2],
    ['an hour', HOUR, 60],
    ['all it reserved', 2 * HOUR, 120],
  ])('%s', (_, ranMs, creditsUsed) => {
    given(requested(), activated(startedAtMs), stopRequested('user', startedAtMs + ranMs))
      .when(confirmAt(startedAtMs + ranMs))
      .then(stopped(startedAtMs + ranMs, creditsUsed));
  });

  it('is not billed for the wait before its start', () => {
    given(requested(), activated(T0 + 30 * MINUTE), stopRequested('user', T0 + 31 * MINUTE))
      .when(confirmAt(T0 + 31 * MINUTE))
      .then(stopped(T0 + 31 * MINUTE, 1));
  });

  it('is not billed for the browser’s teardown after the stop', () => {
    given(requested(), activated(startedAtMs), stopRequested('user', startedAtMs + MINUTE))
      .when(confirmAt(startedAtMs + MINUTE + 2 * SECOND))
      .then(stopped(startedAtMs + MINUTE + 2 * SECOND, 1));
  });

  it('is never billed more than it reserved, however late its stop was requested', () => {
    given(requested(), activated(startedAtMs), stopRequested('expired', T0 + 5 * HOUR))
      .when(confirmAt(T0 + 5 * HOUR))
      .then(stopped(T0 + 5 * HOUR, 120, 'expired'));
  });

  it('is billed nothing if the clock is behind the start', () => {
    given(requested(), activated(startedAtMs), stopRequested())
      .when(confirmAt(startedAtMs - SECOND))
      .then(stopped(startedAtMs - SECOND, 0));
  });

  it('gets the unused part of an extension refunded too', () => {
    given(
      requested(),
      activated(T0),
      extended(HOUR, T0 + 3 * HOUR),
      stopRequested('user', T0 + 10 * MINUTE),
    )
      .when(confirmAt(T0 + 10 * MINUTE))
      .then({
        type: 'session.stopped',
        data: {
          reason: 'user',
          endedAt: iso(T0 + 10 * MINUTE),
          creditsUsed: 10,
          creditsRefunded: 170,
        },
      });
  });
});

describe('a session with egress rules', () => {
  /** Twice what `egressRecorded` has, of both hosts. */
  const egress = { bytesSent: 8_200, bytesReceived: 182_000, refused: 4 };
  const history = [requested(), activated(T0), egressRecorded, egressRecorded];

  it('tells what its browser sent, received and was refused when it ends', () => {
    const end = { reason: 'user', endedAt: iso(T0 + MINUTE) } as const;
    given(...history, stopRequested('user', T0 + MINUTE))
      .when(confirmAt(T0 + MINUTE))
      .then({
        type: 'session.stopped',
        data: { ...end, creditsUsed: 1, creditsRefunded: 119, egress },
      });
  });

  it('tells it when it fails, too', () => {
    const ended = { endedAt: iso(T0 + MINUTE), creditsUsed: 1, creditsRefunded: 119 };
    const told = { reason: 'server_lost', detail: '', exitCode: null } as const;
    given(...history)
      .when({ type: 'FailSession', ...told, now: T0 + MINUTE })
      .then({ type: 'session.failed', data: { ...told, ...ended, egress } });
  });
});

describe('a session that fails', () => {
  const fail = { type: 'FailSession', detail: '', exitCode: null } as const;

  it('costs nothing before its start', () => {
    given(requested())
      .when({ ...fail, reason: 'launch_failed', now: T0 + 20 * MINUTE })
      .then(failed({ detail: '', exitCode: null, endedAt: iso(T0 + 20 * MINUTE) }));
  });

  it('costs the minutes it ran after its start', () => {
    given(requested(), activated(T0))
      .when({ ...fail, reason: 'server_lost', now: T0 + 20 * MINUTE })
      .then({
        type: 'session.failed',
        data: {
          reason: 'server_lost',
          detail: '',
          exitCode: null,
          endedAt: iso(T0 + 20 * MINUTE),
          creditsUsed: 20,
          creditsRefunded: 100,
        },
      });
  });
});
