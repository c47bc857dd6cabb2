import { Type, type Static } from 'typebox';
import type { EventOf } from './envelope.ts';
import { CarriedForward, Moment, OrganizationId, SessionId, UserId } from './fields.ts';

/** A browser's profile, kept between sessions: what its saved versions hold, never the contents. */

export const ProfileId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'the profile',
});
const VersionNumber = Type.Integer({ minimum: 1, description: 'counts from 1, without a gap' });
const Bytes = Type.Integer({ minimum: 0, description: 'size in the object store' });

/** Versions that are kept at most, and what of each is listed: a profile's events carry it all. */
export const versionsMax = 20;
export const listedMax = { origins: 50, cookies: 100 };

/** What a version holds, by name: values are in the archive alone. */
export const ProfileContents = Type.Object(
  {
    origins: Type.Array(Type.String({ maxLength: 256 }), {
      maxItems: listedMax.origins,
      description: 'origins with stored data, as `https://example.com`',
    }),
    cookies: Type.Array(
      Type.Object({
        domain: Type.String({ maxLength: 256 }),
        name: Type.String({ maxLength: 128 }),
      }),
      { maxItems: listedMax.cookies, description: 'by domain and name' },
    ),
    isCut: Type.Optional(
      Type.Boolean({ description: 'true: there are more than are listed here' }),
    ),
  },
  { description: 'what it holds, by name' },
);
export type ProfileContents = Static<typeof ProfileContents>;

export const ProfileVersion = Type.Object({
  version: VersionNumber,
  sessionId: SessionId,
  savedAt: Moment,
  sha256: Type.String({
    pattern: '^[0-9a-f]{64}$',
    description:
      'SHA-256 of the packed archive before its encryption, which names it in the object store',
  }),
  bytes: Bytes,
  browser: Type.String({ maxLength: 64, description: 'version of the browser that wrote it' }),
  contents: ProfileContents,
});
export type ProfileVersion = Static<typeof ProfileVersion>;

const Name = Type.String({ minLength: 1, maxLength: 128, description: 'for people' });

export const profileEvents = {
  'profile.created': Type.Object({ name: Name, by: UserId, at: Moment }),
  /** In one batch with the session's request; in force as long as that session is open. */
  'profile.writer-admitted': Type.Object({ sessionId: SessionId, at: Moment }),
  'profile.version-saved': Type.Object({
    ...ProfileVersion.properties,
    kept: Type.Integer({
      minimum: 1,
      maximum: versionsMax,
      description: 'how many of the newest versions are kept from now on',
    }),
  }),
  'profile.removed': Type.Object({ by: UserId, at: Moment }),
  'profile.carried-forward': CarriedForward,
};
export type ProfileEvent = EventOf<typeof profileEvents>;

export const ProfileState = Type.Object({
  id: ProfileId,
  organizationId: OrganizationId,
  name: Name,
  createdBy: UserId,
  createdAt: Moment,
  /** The last session that was admitted to save. Only while it is open no other one is. */
  writer: Type.Union([SessionId, Type.Null()]),
  /** The number of the newest version; 0: none yet. */
  latest: Type.Integer({ minimum: 0 }),
  /** Those that are kept, oldest first. */
  versions: Type.Array(ProfileVersion, { maxItems: versionsMax }),
  removedAt: Type.Union([Moment, Type.Null()]),
});
export type ProfileState = Static<typeof ProfileState>;

/** The profile that a session was requested with. */
export const AskedProfile = Type.Object(
  {
    id: ProfileId,
    version: Type.Integer({
      minimum: 0,
      description: 'the version that the browser begins with; 0: an empty profile',
    }),
    save: Type.Boolean({ description: 'true: the session saves the profile' }),
  },
  { description: 'profile of the browser; absent: none' },
);
export type AskedProfile = Static<typeof AskedProfile>;

/** Why a session's profile was not saved. */
export const NotSavedReason = Type.Union(
  [
    Type.Literal('browser_ended'),
    Type.Literal('not_closed'),
    Type.Literal('too_large'),
    Type.Literal('storage'),
    Type.Literal('not_writer'),
  ],
  {
    description:
      'browser_ended: without a proper close; not_closed: not in time; too_large: more than ' +
      '`PROFILE_MB_MAX`; storage: it could not be stored; not_writer: another session may save',
  },
);
export type NotSavedReason = Static<typeof NotSavedReason>;

const AtEnd = Type.Boolean({ description: 'false: while the session goes on' });

/** Events of a session whose profile is saved. */
export const sessionProfileEvents = {
  'session.profile-save-requested': Type.Object({ profileId: ProfileId, at: Moment }),
  'session.profile-saved': Type.Object({
    profileId: ProfileId,
    version: VersionNumber,
    bytes: Bytes,
    atEnd: AtEnd,
  }),
  'session.profile-not-saved': Type.Object({
    profileId: ProfileId,
    reason: NotSavedReason,
    detail: Type.String({ maxLength: 512, description: 'for people; holds no secret' }),
    atEnd: AtEnd,
  }),
};

/** A session's profile, with the outcome once the session has ended or is about to. */
export const SessionProfile = Type.Object({
  ...AskedProfile.properties,
  /** The last version that the session has saved. */
  saved: Type.Optional(VersionNumber),
  /** Set while a save that a client asked for is under way. */
  saveRequestedAt: Type.Optional(Moment),
  /** Set once the save at its end has succeeded or failed. */
  isDone: Type.Optional(Type.Boolean()),
});
