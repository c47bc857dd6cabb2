import type { NotSavedReason } from '#events/profile.ts';
import type { SessionEvent, SessionState } from '#events/session.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { ProfileOutcome, SaveProfile } from './commands.ts';
import { isFinal } from './session.ts';

const DETAIL_CHARS_MAX = 512;

/** A save that was asked for and has had no outcome for so long is given up. */
export const SAVE_GIVEN_UP_MS = 90_000;

/** One at a time, so that what a caller waits for is a copy that was made after it asked. */
export function saveProfile(
  { now }: SaveProfile,
  { id, status, profile }: SessionState,
): SessionEvent[] | Rejection {
  if (status === 'creating' || status === 'queued')
    return reject('SESSION_NOT_READY', { session_id: id, status });
  if (status !== 'active') return reject('SESSION_NOT_ACTIVE', { session_id: id, status });
  if (profile?.save !== true) return reject('PROFILE_READ_ONLY', { session_id: id });
  const { id: profileId } = profile;
  if (isSaveUnderWay(profile, now))
    return reject('PROFILE_SAVE_UNDER_WAY', { session_id: id }, { retryAfterSeconds: 1 });
  const at = new Date(now).toISOString();
  return [{ type: 'session.profile-save-requested', data: { profileId, at } }];
}

/** Whether a save that a client asked for has had no outcome yet, and is not given up. */
export function isSaveUnderWay(profile: SessionState['profile'], now: number): boolean {
  const since = profile?.saveRequestedAt;
  return since !== undefined && now - Date.parse(since) < SAVE_GIVEN_UP_MS;
}

/** Decides on the report of what has become of the session's profile. */
export function decideProfileOutcome(
  { outcome, atEnd }: ProfileOutcome,
  session: SessionState,
): SessionEvent[] {
  const { profile, status } = session;
  const isExpected = profile?.save === true && profile.isDone !== true;
  if (!isExpected || isFinal(status) || session.workload === null) return [];
  const { id: profileId } = profile;
  return 'version' in outcome
    ? [{ type: 'session.profile-saved', data: { profileId, ...outcome, atEnd } }]
    : [notSaved(profileId, outcome.reason, outcome.detail, atEnd)];
}

/**
 * What precedes the end of a session that was to save its profile, if no report has said that it
 * did or could not: its browser has ended otherwise.
 */
export function unsavedAtEnd(session: SessionState, detail: string): SessionEvent[] {
  const { profile, workload } = session;
  if (profile?.save !== true || profile.isDone === true || workload === null) return [];
  return [notSaved(profile.id, 'browser_ended', detail, true)];
}

function notSaved(
  profileId: string,
  reason: NotSavedReason,
  detail: string,
  atEnd: boolean,
): SessionEvent {
  const data = { profileId, reason, detail: detail.slice(0, DETAIL_CHARS_MAX), atEnd };
  return { type: 'session.profile-not-saved', data };
}
