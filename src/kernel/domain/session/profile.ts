import type { SessionEvent, SessionState } from '#events/session.ts';

type ProfileEvent = Extract<SessionEvent, { type: `session.profile-${string}` }>;

/** The session's profile after the event. */
export function profileAfter(profile: SessionState['profile'], event: ProfileEvent) {
  if (profile === undefined) return {};
  if (event.type === 'session.profile-save-requested')
    return { profile: { ...profile, saveRequestedAt: event.data.at } };
  const { saveRequestedAt: _, ...settled } = profile;
  const saved = event.type === 'session.profile-saved' ? { saved: event.data.version } : {};
  return { profile: { ...settled, ...saved, ...(event.data.atEnd ? { isDone: true } : {}) } };
}
