import { describe, it } from 'vitest';
import { keyedExtensionsMax, type Repeatable, type SessionEvent } from '#events/session.ts';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
  extended,
  failed,
  HOUR,
  iso,
  MINUTE,
  queued,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const maxLifetimeMs = 72 * HOUR;

function extend(byMs: number, duration = 'as written', now = T0 + MINUTE) {
  return { type: 'ExtendSession', byMs, maxLifetimeMs, duration, now } as const;
}

describe('extending a session', () => {
  it('moves the current expiry and reserves the additional minutes', () => {
    given(requested(), activated())
      .when(extend(30 * MINUTE))
      .then({
        type: 'session.extended',
        data: { byMs: 30 * MINUTE, expiresAt: iso(T0 + 150 * MINUTE), creditsReserved: 30 },
      });
  });

  it('adds up over several extensions', () => {
    const first = extended(HOUR, T0 + 3 * HOUR);
    given(requested(), activated(), first)
      .when(extend(HOUR))
      .then(extended(HOUR, T0 + 4 * HOUR));
    given(requested(), activated(), first).stateIs({
      status: 'active',
      expiresAt: iso(T0 + 3 * HOUR),
      creditsReserved: 180,
    });
  });

  it('is possible while the session is creating or queued, and keeps that status', () => {
    const longer = extended(HOUR, T0 + 3 * HOUR);
    given(requested()).when(extend(HOUR)).then(longer);
    given(requested(), assigned()).when(extend(HOUR)).then(longer);
    given(requested(), queued).when(extend(HOUR)).then(longer);
    given(requested(), queued, longer).stateIs({ status: 'queued' });
  });
});

describe('the lifetime of a session, extensions included', () => {
  const day = 24 * HOUR;
  const aged = [
    requested(),
    activated(),
    extended(day, T0 + 26 * HOUR),
    extended(day, T0 + 50 * HOUR),
  ];

  it('may reach its maximum', () => {
    given(...aged)
      .when(extend(22 * HOUR))
      .then(extended(22 * HOUR, T0 + 72 * HOUR));
  });

  it('may not exceed it', () => {
    given(...aged)
      .when(extend(22 * HOUR + 1, '22h1m'))
      .thenRejected('INVALID_DURATION', { duration: '22h1m', max_lifetime_minutes: 72 * 60 });
  });
});

describe('a session that is ending or has ended', () => {
  it('is not extended', () => {
    given(requested(), activated(), stopRequested())
      .when(extend(HOUR))
      .thenRejected('SESSION_NOT_ACTIVE', { session_id: 'ses_1', status: 'stopping' });
    given(requested(), stopRequested(), stopped(T0))
      .when(extend(HOUR))
      .thenRejected('SESSION_NOT_ACTIVE', { session_id: 'ses_1', status: 'stopped' });
    given(requested(), failed())
      .when(extend(HOUR))
      .thenRejected('SESSION_NOT_ACTIVE', { session_id: 'ses_1', status: 'failed' });
  });

  it('is distinguished from one that does not exist', () => {
    given().when(extend(HOUR)).thenRejected('SESSION_NOT_FOUND');
  });
});

describe('a session whose expiry has passed, although its timer has not ended it yet', () => {
  const end = T0 + 2 * HOUR;
  const at = (now: number) => extend(HOUR, 'as written', now);

  it('is extended up to its last millisecond', () => {
    given(requested(), activated())
      .when(at(end - 1))
      .then(extended(HOUR, T0 + 3 * HOUR));
  });

  it('is not extended from its expiry on, whatever its status', () => {
    for (const [status, ...history] of [
      ['active', requested(), activated()],
      ['creating', requested()],
      ['creating', requested(), assigned()],
      ['queued', requested(), queued],
    ] as const)
      for (const now of [end, end + 3 * HOUR])
        given(...history)
          .when(at(now))
          .thenRejected('SESSION_NOT_ACTIVE', {
            session_id: 'ses_1',
            status,
            expires_at: iso(end),
          });
  });

  it('is judged by its newest expiry', () => {
    const longer = extended(HOUR, T0 + 3 * HOUR);
    given(requested(), activated(), longer)
      .when(at(end))
      .then(extended(HOUR, T0 + 4 * HOUR));
    given(requested(), activated(), longer)
      .when(at(end + HOUR))
      .thenRejected('SESSION_NOT_ACTIVE', {
        session_id: 'ses_1',
        status: 'active',
        expires_at: iso(T0 + 3 * HOUR),
      });
  });

  it('still answers a repeat of an extension with an Idempotency-Key', () => {
    const asked = { key: 'ext_1', fingerprint: 'of-its-body' };
    const { data } = extended(MINUTE, end + MINUTE) as { data: object };
    const done = { type: 'session.extended', data: { ...data, repeatable: asked } };
    given(requested(), activated(), done as SessionEvent)
      .when({ ...at(end + HOUR), repeatable: asked })
      .thenNothing();
  });
});

describe('an extension with an Idempotency-Key', () => {
  const asked = { key: 'ext_1', fingerprint: 'of-its-body' };
  const keyed = { ...extend(HOUR), repeatable: asked };
  const done = extendedBy(asked, T0 + 3 * HOUR);

  it('is executed once', () => {
    given(requested(), activated()).when(keyed).then(done);
    given(requested(), activated(), done).when(keyed).thenNothing();
    given(requested(), activated(), done).stateIs({
      creditsReserved: 180,
      keyedExtensions: [{ repeatable: asked, status: 'active', expiresAt: iso(T0 + 3 * HOUR) }],
    });
  });

  it('is recognized, whatever has happened to the session since', () => {
    for (const since of [[stopRequested()], [failed()], [extended(HOUR, T0 + 4 * HOUR)]])
      given(requested(), activated(), done, ...since)
        .when(keyed)
        .thenNothing();
  });

  it('is rejected if the key came with another body', () => {
    given(requested(), activated(), done)
      .when({ ...keyed, repeatable: { ...asked, fingerprint: 'of-another' } })
      .thenRejected('IDEMPOTENCY_CONFLICT', { session_id: 'ses_1' });
  });

  it('is a new one with another key, or without a key', () => {
    const other = { key: 'ext_2', fingerprint: 'of-its-body' };
    given(requested(), activated(), done)
      .when({ ...keyed, repeatable: other })
      .then(extendedBy(other, T0 + 4 * HOUR));
    given(requested(), activated(), done)
      .when(extend(HOUR))
      .then(extended(HOUR, T0 + 4 * HOUR));
  });

  it('is recognized while it is among the last 32 with a key', () => {
    const many = Array.from({ length: keyedExtensionsMax }, (_, index) =>
      extendedBy({ key: `ext_more_${index}`, fingerprint: 'x' }, T0 + 4 * HOUR),
    );
    given(requested(), activated(), done, ...many.slice(1), extended(HOUR, T0 + 5 * HOUR))
      .when(keyed)
      .thenNothing();
    given(requested(), activated(), done, ...many)
      .when(keyed)
      .then(extendedBy(asked, T0 + 5 * HOUR));
  });

  function extendedBy(repeatable: Repeatable, expiresAtMs: number): SessionEvent {
    const { data } = extended(HOUR, expiresAtMs) as { data: object };
    return { type: 'session.extended', data: { ...data, repeatable } } as SessionEvent;
  }
});
