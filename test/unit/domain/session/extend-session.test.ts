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

function extend(byMs: number, duration = 'as written') {
  return { type: 'ExtendSession', byMs, maxLifetimeMs, duration } as const;
}

describe('extending a session', () => {
  it('moves the expiry from where it stands and reserves the minutes on top', () => {
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

  it('is possible while the session is creating or queued, and leaves it so', () => {
    const longer = extended(HOUR, T0 + 3 * HOUR);
    given(requested()).when(extend(HOUR)).then(longer);
    given(requested(), assigned()).when(extend(HOUR)).then(longer);
    given(requested(), queued).when(extend(HOUR)).then(longer);
    given(requested(), queued, longer).stateIs({ status: 'queued' });
  });
});

describe('the whole life of a session', () => {
  const day = 24 * HOUR;
  const aged = [
    requested(),
    activated(),
    extended(day, T0 + 26 * HOUR),
    extended(day, T0 + 50 * HOUR),
  ];

  it('may reach its bound', () => {
    given(...aged)
      .when(extend(22 * HOUR))
      .then(extended(22 * HOUR, T0 + 72 * HOUR));
  });

  it('may not pass it', () => {
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

  it('is told apart from one that never was', () => {
    given().when(extend(HOUR)).thenRejected('SESSION_NOT_FOUND');
  });
});

describe('an extension with an Idempotency-Key', () => {
  const asked = { key: 'ext_1', fingerprint: 'of-its-body' };
  const keyed = { ...extend(HOUR), repeatable: asked };
  const done = extendedBy(asked, T0 + 3 * HOUR);

  it('is done once', () => {
    given(requested(), activated()).when(keyed).then(done);
    given(requested(), activated(), done).when(keyed).thenNothing();
    given(requested(), activated(), done).stateIs({
      creditsReserved: 180,
      keyedExtensions: [{ repeatable: asked, status: 'active', expiresAt: iso(T0 + 3 * HOUR) }],
    });
  });

  it('is known again whatever has become of the session since', () => {
    for (const since of [[stopRequested()], [failed()], [extended(HOUR, T0 + 4 * HOUR)]])
      given(requested(), activated(), done, ...since)
        .when(keyed)
        .thenNothing();
  });

  it('is refused where the key came with another body', () => {
    given(requested(), activated(), done)
      .when({ ...keyed, repeatable: { ...asked, fingerprint: 'of-another' } })
      .thenRejected('IDEMPOTENCY_CONFLICT', { session_id: 'ses_1' });
  });

  it('is another one under another key, or under none', () => {
    const other = { key: 'ext_2', fingerprint: 'of-its-body' };
    given(requested(), activated(), done)
      .when({ ...keyed, repeatable: other })
      .then(extendedBy(other, T0 + 4 * HOUR));
    given(requested(), activated(), done)
      .when(extend(HOUR))
      .then(extended(HOUR, T0 + 4 * HOUR));
  });

  it('is known again for as long as it is among the last 32 with one', () => {
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
