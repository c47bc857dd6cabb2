import { describe, it } from 'vitest';
import type { SessionEvent } from '#events/session.ts';
import { sharesMax } from '#events/share.ts';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  HOUR,
  iso,
  MINUTE,
  requested,
  SECOND,
  shared,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const [made, used, revoked] = shared;

function create(shareId: string, now = T0 + 6 * MINUTE) {
  const lifetimeMs = 54 * MINUTE;
  return { type: 'CreateShare', shareId, mode: 'view', lifetimeMs, by: 'user_1', now } as const;
}
const use = (now: number) => ({ type: 'RecordShareUse', shareId: 'shr_1', now }) as const;
const revoke = {
  type: 'RevokeShare',
  shareId: 'shr_1',
  by: 'user_1',
  now: T0 + 8 * MINUTE,
} as const;

describe('a share of a session’s screen', () => {
  it('is made, used and revoked', () => {
    given(requested(), activated()).when(create('shr_1')).then(made);
    given(requested(), activated(), made)
      .when(use(T0 + 7 * MINUTE))
      .then(used);
    given(requested(), activated(), made, used).when(revoke).then(revoked);
    given(requested(), activated(), made, used, revoked).stateIs({ shares: [] });
  });

  it('can be made before the browser is there', () => {
    given(requested()).when(create('shr_1')).then(made);
  });

  it('records uses within a second once', () => {
    const first = T0 + 7 * MINUTE;
    const seen = given(requested(), activated(), made, used);
    seen.when(use(first + SECOND - 1)).thenNothing();
    seen
      .when(use(first + SECOND))
      .then({ ...used, data: { ...used.data, at: iso(first + SECOND) } });
  });

  it('records no use once it has expired', () => {
    given(requested(), activated(), made)
      .when(use(T0 + HOUR))
      .thenNothing();
  });

  it('is one of a bounded number, in which those that have expired do not count', () => {
    const many = Array.from({ length: sharesMax }, (_, n) => ({
      ...made,
      data: { ...made.data, shareId: `shr_${n}` },
    }));
    given(requested(), activated(), ...many)
      .when(create('shr_more'))
      .thenRejected('SHARE_LIMIT_EXCEEDED', { session_id: 'ses_1', limit: sharesMax });
    const later = T0 + 2 * HOUR;
    const next = {
      ...made,
      data: {
        ...made.data,
        shareId: 'shr_more',
        at: iso(later),
        expiresAt: iso(later + 54 * MINUTE),
      },
    };
    given(requested(), activated(), ...many)
      .when(create('shr_more', later))
      .then(next);
    given(requested(), activated(), ...many, next).stateIs({ shares: [shareOf(next.data)] });
  });

  it('is not found once it is revoked, and none is made in a session that ends', () => {
    given(requested(), activated())
      .when(revoke)
      .thenRejected('SHARE_NOT_FOUND', { session_id: 'ses_1', share_id: 'shr_1' });
    given(requested(), activated(), stopRequested())
      .when(create('shr_1'))
      .thenRejected('SESSION_ENDED', {
        session_id: 'ses_1',
        status: 'stopping',
        ended_reason: 'user',
      });
  });
});

function shareOf({ shareId: id, mode, by: createdBy, at: createdAt, expiresAt }: ShareCreated) {
  return { id, mode, createdBy, createdAt, expiresAt };
}
type ShareCreated = Extract<SessionEvent, { type: 'session.share-created' }>['data'];
