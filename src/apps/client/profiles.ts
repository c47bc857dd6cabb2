import type { Static } from 'typebox';
import type * as schemas from '#src/features/profiles/routes/schemas.ts';
import { queryOf, type CallOptions, type Requester } from './requester.ts';

export type Profile = Static<typeof schemas.Profile>;
export type ProfileSummary = Static<typeof schemas.ProfileSummary>;
export type ProfileList = Static<typeof schemas.ProfileList>;
export type ProfileSaved = Static<typeof schemas.ProfileSaved>;
export type ProfileRemoved = Static<typeof schemas.ProfileRemoved>;

/** Profiles of browsers. Every method throws ServiceError if the service refuses, and NoAnswer. */
export type Profiles = {
  /** Without an answer it is not repeated: there might be two. */
  create(asked: { name: string }, options?: CallOptions): Promise<Profile>;
  /** With its versions, and what each holds by name. */
  get(id: string, options?: CallOptions): Promise<Profile>;
  list(query?: { limit?: number; offset?: number }, options?: CallOptions): Promise<ProfileList>;
  /**
   * Saves the profile of a session now, which goes on; resolves with the new version.
   * @throws ServiceError with PROFILE_NOT_SAVED and the reason, or PROFILE_READ_ONLY
   */
  save(sessionId: string, options?: CallOptions): Promise<ProfileSaved>;
  /** @throws ServiceError with PROFILE_IN_USE while a session is open that saves it */
  remove(id: string, options?: CallOptions): Promise<ProfileRemoved>;
};

/** Longer than the service waits for the save. */
const SAVE_TIMEOUT_MS = 90_000;

export function createProfiles(requester: Requester): Profiles {
  const path = '/api/profiles';
  const pathOf = (id: string) => `${path}/${encodeURIComponent(id)}`;
  return {
    create: (body, options) => requester.json({ method: 'POST', path, body, ...options }),
    get: (id, options) => requester.json({ method: 'GET', path: pathOf(id), ...options }),
    list: (query = {}, options) =>
      requester.json({ method: 'GET', path, query: queryOf(query), ...options }),
    save: (sessionId, options) =>
      requester.json({
        method: 'POST',
        path: `/api/sessions/${encodeURIComponent(sessionId)}/profile/save`,
        timeoutMs: SAVE_TIMEOUT_MS,
        ...options,
      }),
    remove: (id, options) => requester.json({ method: 'DELETE', path: pathOf(id), ...options }),
  };
}
