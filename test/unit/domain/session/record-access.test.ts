import { describe, expect, it } from 'vitest';
import { ACCESS_SAMPLE_MS } from '#src/kernel/domain/session/decide.ts';
import { session } from '#test/support/given-when-then.ts';
import {
  accessed,
  activated,
  iso,
  MINUTE,
  queued,
  requested,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;

function access(now: number, via: 'api' | 'cdp' | 'vnc' = 'api') {
  return { type: 'RecordAccess', via, now } as const;
}

describe('access to a session', () => {
  it('is recorded with the kind of access', () => {
    given(requested(), activated())
      .when(access(T0 + 5, 'cdp'))
      .then(accessed(T0 + 5, 'cdp'));
    given(requested(), activated(), accessed(T0 + 5, 'vnc')).stateIs({
      status: 'active',
      lastAccessedAt: iso(T0 + 5),
    });
  });

  it('is recorded once a minute at most', () => {
    expect(ACCESS_SAMPLE_MS).toBe(MINUTE);
    const history = [requested(), activated(), accessed(T0)];
    given(...history)
      .when(access(T0 + MINUTE - 1))
      .thenNothing();
    given(...history)
      .when(access(T0 + MINUTE))
      .then(accessed(T0 + MINUTE));
  });

  it('is not recorded if the clock is behind the last record', () => {
    given(requested(), activated(), accessed(T0))
      .when(access(T0 - MINUTE))
      .thenNothing();
  });

  it('is not recorded while there is no browser to use', () => {
    given(requested()).when(access(T0)).thenNothing();
    given(requested(), queued).when(access(T0)).thenNothing();
    given(requested(), activated(), stopRequested()).when(access(T0)).thenNothing();
  });
});
