import { Type } from 'typebox';
import type { ProfileState, ProfileVersion as Version } from '#events/profile.ts';
import { Count, Nullable, Timestamp } from '#src/roles/api/schemas/fields.ts';
import { LINE } from '#src/roles/api/schemas/requests.ts';

/** Schemas of profiles. */

const EXAMPLE = 'prf_8v1KpR7tYc0NgXb4n9T6kL';
const SESSION = 'ses_J5mYt3QKX2m0bq1uHcR8Vw';

/** Any text: one that is no profile's id is PROFILE_NOT_FOUND. */
export const ProfilePath = Type.Object({ id: Type.String({ description: 'the profile’s id' }) });

export const CreateProfileBody = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: `^${LINE}+$`,
      description: 'for people',
    }),
  },
  { title: 'CreateProfile', additionalProperties: false, examples: [{ name: 'shop log-in' }] },
);

const ProfileVersion = Type.Object(
  {
    version: Type.Integer({ minimum: 1, examples: [3] }),
    saved_at: Timestamp('2026-11-20T11:00:01.204Z'),
    session_id: Type.String({ examples: [SESSION], description: 'the session that saved it' }),
    bytes: Count(4_718_592, 'compressed and encrypted'),
    browser_version: Type.String({ examples: ['150.0.7871.100'] }),
    origins: Type.Array(Type.String({ examples: ['https://shop.example.com'] }), {
      description: 'origins with stored data, at most 50',
    }),
    cookies: Type.Array(
      Type.Object({
        domain: Type.String({ examples: ['.shop.example.com'] }),
        name: Type.String({ examples: ['session'] }),
      }),
      { description: 'by domain and name, never their values; at most 100' },
    ),
    is_cut: Type.Boolean({
      examples: [false],
      description: 'true: it has more origins or cookies than are listed',
    }),
  },
  { title: 'ProfileVersion' },
);

export const ProfileSummary = Type.Object(
  {
    id: Type.String({ examples: [EXAMPLE] }),
    name: Type.String({ examples: ['shop log-in'] }),
    created_at: Timestamp('2026-11-20T09:00:00.000Z'),
    created_by: Type.String({ examples: ['user_1'] }),
    latest_version: Nullable(Type.Integer({ minimum: 1, examples: [3] }), {
      description: 'null: none is saved yet',
    }),
    saving_session_id: Nullable(Type.String({ examples: [SESSION] }), {
      description: 'the open session that saves it; null: none',
    }),
  },
  { title: 'ProfileSummary' },
);

export const Profile = Type.Object(
  {
    ...ProfileSummary.properties,
    versions: Type.Array(ProfileVersion, { description: 'those that are kept, newest first' }),
  },
  { title: 'Profile' },
);

export const ProfileList = Type.Object(
  { profiles: Type.Array(ProfileSummary), total: Count(1) },
  { title: 'ProfileList' },
);

export const ProfileRemoved = Type.Object(
  {
    message: Type.String({ examples: [`Profile ${EXAMPLE} has been removed.`] }),
    id: Type.String({ examples: [EXAMPLE] }),
  },
  { title: 'ProfileRemoved' },
);

export const ProfileSaved = Type.Object(
  {
    session_id: Type.String({ examples: ['ses_5uLw2ZfQx8v1KpR7tYc0Ng'] }),
    profile_id: Type.String({ examples: [EXAMPLE] }),
    version: Type.Integer({ minimum: 1, description: 'the version that it is now', examples: [3] }),
    bytes: Type.Integer({
      minimum: 0,
      description: 'size in the object store',
      examples: [4_718_592],
    }),
  },
  { title: 'ProfileSaved' },
);

/** @param writer the session that saves it, if that is open */
export function presentSummary(profile: ProfileState, writer: string | null) {
  return {
    id: profile.id,
    name: profile.name,
    created_at: profile.createdAt,
    created_by: profile.createdBy,
    latest_version: profile.latest === 0 ? null : profile.latest,
    saving_session_id: writer,
  };
}

export function presentProfile(profile: ProfileState, writer: string | null) {
  return {
    ...presentSummary(profile, writer),
    versions: profile.versions.toReversed().map(presentVersion),
  };
}

function presentVersion({ version, savedAt, sessionId, bytes, browser, contents }: Version) {
  return {
    version,
    saved_at: savedAt,
    session_id: sessionId,
    bytes,
    browser_version: browser,
    origins: contents.origins,
    cookies: contents.cookies,
    is_cut: contents.isCut ?? false,
  };
}
