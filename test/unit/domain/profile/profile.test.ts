import { describe, it } from 'vitest';
import type { ProfileEvent } from '#events/profile.ts';
import { HOUR, iso, MINUTE, T0 } from '#test/support/examples.ts';
import { profile } from '#test/support/given-when-then.ts';

const { given } = profile;
const created: ProfileEvent = {
  type: 'profile.created',
  data: { name: 'shop log-in', by: 'user_1', at: iso(T0) },
};
const removed: ProfileEvent = {
  type: 'profile.removed',
  data: { by: 'user_1', at: iso(T0 + HOUR) },
};
const archive = {
  sha256: 'ab'.repeat(32),
  bytes: 4_718_592,
  browser: '150.0.7871.100',
  contents: { origins: ['https://shop.example'], cookies: [{ domain: 'shop.example', name: 's' }] },
};

function admitted(sessionId: string): ProfileEvent {
  return { type: 'profile.writer-admitted', data: { sessionId, at: iso(T0) } };
}
function saved(version: number, kept = 10, sessionId = 'ses_1'): ProfileEvent {
  const data = { version, sessionId, savedAt: iso(T0), ...archive, kept };
  return { type: 'profile.version-saved', data };
}
function use(
  sessionId: string,
  other: { version?: number; save?: boolean; isOpen?: boolean } = {},
) {
  const { version = null, save = true, isOpen: isWriterOpen = false } = other;
  return { type: 'UseProfile', sessionId, version, save, isWriterOpen, now: T0 } as const;
}
function saveAs(sessionId: string, kept = 10) {
  return { type: 'SaveVersion', sessionId, archive, kept, now: T0 } as const;
}

describe('a profile', () => {
  it('is created empty', () => {
    given()
      .when({ type: 'CreateProfile', name: 'shop log-in', by: 'user_1', now: T0 })
      .then(created);
    given(created).stateIs({ latest: 0, versions: [], writer: null });
  });

  it('admits one session that saves it, and names it to a second one', () => {
    given(created).when(use('ses_1')).then(admitted('ses_1'));
    given(created, admitted('ses_1'))
      .when(use('ses_2', { isOpen: true }))
      .thenRejected('PROFILE_IN_USE', { profile_id: 'prf_1', session_id: 'ses_1' });
  });

  it('admits another one once the session of the first has ended, however it did', () => {
    given(created, admitted('ses_1')).when(use('ses_2')).then(admitted('ses_2'));
  });

  it('is read by any number of sessions meanwhile', () => {
    given(created, admitted('ses_1'), saved(1))
      .when(use('ses_2', { save: false, isOpen: true }))
      .thenNothing();
  });

  it('can be taken up at each version that is kept', () => {
    const history = [created, admitted('ses_1'), saved(1, 2), saved(2, 2), saved(3, 2)] as const;
    given(...history)
      .when(use('ses_2', { version: 2 }))
      .then(admitted('ses_2'));
    for (const version of [1, 4])
      given(...history)
        .when(use('ses_2', { version, save: false }))
        .thenRejected('PROFILE_VERSION_NOT_FOUND', {
          profile_id: 'prf_1',
          version,
          versions: [2, 3],
        });
  });

  it('gets versions that count on, from the session that was admitted last alone', () => {
    given(created, admitted('ses_1')).when(saveAs('ses_1')).then(saved(1));
    given(created, admitted('ses_1'), saved(1)).when(saveAs('ses_1', 3)).then(saved(2, 3));
    given(created, admitted('ses_1'), admitted('ses_2'))
      .when(saveAs('ses_1'))
      .thenRejected('PROFILE_IN_USE', { profile_id: 'prf_1', session_id: 'ses_2' });
    given(created).when(saveAs('ses_1')).thenRejected('PROFILE_IN_USE');
  });

  it('counts on from a version that was taken up again', () => {
    given(created, saved(1), saved(2), admitted('ses_2'))
      .when(saveAs('ses_2'))
      .then(saved(3, 10, 'ses_2'));
  });

  it('is removed with its versions, but not while a session is open that saves it', () => {
    const remove = { type: 'RemoveProfile', by: 'user_1', now: T0 + HOUR } as const;
    const used = given(created, admitted('ses_1'), saved(1));
    used
      .when({ ...remove, isWriterOpen: true })
      .thenRejected('PROFILE_IN_USE', { profile_id: 'prf_1', session_id: 'ses_1' });
    used.when({ ...remove, isWriterOpen: false }).then(removed);
    given(created, saved(1), removed).stateIs({ versions: [], writer: null });
  });

  it('is not there before it is created, and after it is removed', () => {
    const gone = { profile_id: 'prf_1' };
    const remove = { type: 'RemoveProfile', by: 'user_1', isWriterOpen: false } as const;
    for (const before of [given(), given(created, admitted('ses_1'), removed)]) {
      before.when(use('ses_2')).thenRejected('PROFILE_NOT_FOUND', gone);
      before.when(saveAs('ses_1')).thenRejected('PROFILE_NOT_FOUND', gone);
      before.when({ ...remove, now: T0 + MINUTE }).thenRejected('PROFILE_NOT_FOUND', gone);
    }
  });
});
