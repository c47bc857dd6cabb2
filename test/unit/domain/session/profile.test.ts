import { describe, it } from 'vitest';
import type { SessionEvent } from '#events/session.ts';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  createSession,
  failed,
  MINUTE,
  profile,
  profiled,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const [savedMeanwhile, notSaved] = profiled;
const opened = [requested({ profile }), activated()] as const;
const stopping = [...opened, stopRequested()] as const;
const confirm = { type: 'ConfirmStopped', now: T0 } as const;
const savedAtEnd: SessionEvent = {
  type: 'session.profile-saved',
  data: { ...savedMeanwhile.data, atEnd: true },
};

function report(atEnd: boolean, outcome: object = { version: 4, bytes: 4_718_592 }) {
  return { type: 'ReportProfile', outcome: outcome as { version: 4; bytes: 1 }, atEnd } as const;
}
function unsaved(detail: string): SessionEvent {
  const data = { profileId: 'prf_1', reason: 'browser_ended', detail, atEnd: true } as const;
  return { type: 'session.profile-not-saved', data };
}

describe('the profile of a session', () => {
  it('is part of its request', () => {
    given().when(createSession({ profile })).then(requested({ profile }));
    given(...opened).stateIs({ profile });
  });

  it('is saved while the session goes on, and at its end', () => {
    given(...opened)
      .when(report(false))
      .then(savedMeanwhile);
    given(...stopping)
      .when(report(true))
      .then(savedAtEnd);
    given(...stopping, savedAtEnd).stateIs({ profile: { ...profile, saved: 4, isDone: true } });
    given(...stopping, savedAtEnd)
      .when(confirm)
      .then(stopped(T0));
  });

  it('is saved on request, one request at a time', () => {
    const [, , saveRequested] = profiled;
    const save = (now = T0) => ({ type: 'SaveProfile', now }) as const;
    given(...opened)
      .when(save())
      .then(saveRequested);
    given(...opened, saveRequested)
      .when(save(T0 + MINUTE))
      .thenRejected('PROFILE_SAVE_UNDER_WAY');
    const again = { ...saveRequested.data, at: new Date(T0 + 2 * MINUTE).toISOString() };
    // The server that was asked is gone by then.
    given(...opened, saveRequested)
      .when(save(T0 + 2 * MINUTE))
      .then({ type: 'session.profile-save-requested', data: again });
    given(...opened, saveRequested, savedMeanwhile)
      .when(save())
      .then(saveRequested);
    given(...opened, saveRequested, savedMeanwhile).stateIs({ profile: { ...profile, saved: 4 } });
  });

  it('is saved on request only by an active session that was asked to save it', () => {
    const save = { type: 'SaveProfile', now: T0 } as const;
    given(requested({ profile })).when(save).thenRejected('SESSION_NOT_READY');
    given(...stopping)
      .when(save)
      .thenRejected('SESSION_NOT_ACTIVE');
    given(requested(), activated()).when(save).thenRejected('PROFILE_READ_ONLY');
    const readOnly = { ...profile, save: false };
    given(requested({ profile: readOnly }), activated())
      .when(save)
      .thenRejected('PROFILE_READ_ONLY');
  });

  it('says why it could not be saved, once', () => {
    given(...stopping)
      .when(report(true, { reason: 'not_closed', detail: 'it hung' }))
      .then(notSaved);
    given(...stopping, notSaved)
      .when(report(true))
      .thenNothing();
    given(...stopping, notSaved)
      .when(confirm)
      .then(stopped(T0));
  });

  it('is not saved where the session ends in another way, and its end says so', () => {
    given(...stopping)
      .when(confirm)
      .then(unsaved('the browser has ended, and its profile was not read'), stopped(T0));
    const lost = { reason: 'server_lost', detail: 'no display', exitCode: 1 } as const;
    const fail = { type: 'FailSession', ...lost, now: T0 } as const;
    given(...opened)
      .when(fail)
      .then(unsaved('the session failed: server_lost'), failed({ reason: 'server_lost' }));
  });

  it('leaves no trace where the session only reads it, never had a browser, or has ended', () => {
    const reads = requested({ profile: { ...profile, save: false } });
    given(reads, activated()).when(report(false)).thenNothing();
    given(reads, activated(), stopRequested()).when(confirm).then(stopped(T0));
    given(requested({ profile })).when(report(true)).thenNothing();
    given(...stopping, savedAtEnd, stopped(T0 + MINUTE, 1))
      .when(report(true))
      .thenNothing();
  });
});
