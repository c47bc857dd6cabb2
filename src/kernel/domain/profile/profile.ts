import {
  versionsMax,
  type ProfileContents,
  type ProfileEvent,
  type ProfileState,
  type ProfileVersion,
} from '#events/profile.ts';
import type { RefOf } from '#events/events.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';

/** Profiles that an organization may have. */
export const profilesMax = 100;

/** What a session has saved. */
export type SavedArchive = {
  sha256: string;
  bytes: number;
  browser: string;
  contents: ProfileContents;
};

/**
 * The commands of a profile. `isWriterOpen`: whether the session that was admitted last as the
 * writer has not ended; it is the caller that reads it. `now` is milliseconds since the epoch.
 */
export type ProfileCommand =
  | { type: 'CreateProfile'; name: string; by: string; now: number }
  /** A session is created with the profile; `version` null: the newest. */
  | {
      type: 'UseProfile';
      sessionId: string;
      version: number | null;
      save: boolean;
      isWriterOpen: boolean;
      now: number;
    }
  | { type: 'SaveVersion'; sessionId: string; archive: SavedArchive; kept: number; now: number }
  | { type: 'RemoveProfile'; isWriterOpen: boolean; by: string; now: number };

/** Decides a command: the events to append (none if nothing changes), or a rejection. */
export function decideProfile(
  command: ProfileCommand,
  profile: ProfileState | null,
  id: string,
): ProfileEvent[] | Rejection {
  if (command.type === 'CreateProfile') {
    const { name, by, now } = command;
    return [{ type: 'profile.created', data: { name, by, at: iso(now) } }];
  }
  if (profile === null || profile.removedAt !== null)
    return reject('PROFILE_NOT_FOUND', { profile_id: id });
  switch (command.type) {
    case 'UseProfile':
      return use(command, profile);
    case 'SaveVersion':
      return save(command, profile);
    case 'RemoveProfile':
      return command.isWriterOpen
        ? inUse(profile)
        : [{ type: 'profile.removed', data: { by: command.by, at: iso(command.now) } }];
  }
}

type Of<Type extends ProfileCommand['type']> = Extract<ProfileCommand, { type: Type }>;

/** A session that only reads changes nothing: any number of them may. */
function use(command: Of<'UseProfile'>, profile: ProfileState): ProfileEvent[] | Rejection {
  const { sessionId, version, save: saves, isWriterOpen, now } = command;
  if (version !== null && findVersion(profile, version) === undefined)
    return reject('PROFILE_VERSION_NOT_FOUND', {
      profile_id: profile.id,
      version,
      versions: profile.versions.map((one) => one.version),
    });
  if (!saves) return [];
  if (isWriterOpen && profile.writer !== sessionId) return inUse(profile);
  return [{ type: 'profile.writer-admitted', data: { sessionId, at: iso(now) } }];
}

/** The version is recorded last: its archive is stored by then, and so is each older one's. */
function save(command: Of<'SaveVersion'>, profile: ProfileState): ProfileEvent[] | Rejection {
  const { sessionId, archive, kept, now } = command;
  if (profile.writer !== sessionId) return inUse(profile);
  const { sha256, bytes, browser, contents } = archive;
  const version = profile.latest + 1;
  const saved = { version, sessionId, savedAt: iso(now), sha256, bytes, browser, contents };
  return [{ type: 'profile.version-saved', data: { ...saved, kept } }];
}

function inUse({ id, writer }: ProfileState): Rejection {
  return reject('PROFILE_IN_USE', { profile_id: id, session_id: writer });
}

/** The version with the number; undefined: there was none, or it is kept no more. */
export function findVersion(profile: ProfileState, version: number): ProfileVersion | undefined {
  return profile.versions.find((one) => one.version === version);
}

/** @throws RangeError for an event before `created`, which no valid history contains */
export function evolveProfile(
  profile: ProfileState | null,
  event: ProfileEvent,
  { organizationId, id }: Pick<RefOf<'profile'>, 'organizationId' | 'id'>,
): ProfileState {
  if (event.type === 'profile.created') {
    const { name, by: createdBy, at: createdAt } = event.data;
    const nothing = { writer: null, latest: 0, versions: [], removedAt: null };
    return { id, organizationId, name, createdBy, createdAt, ...nothing };
  }
  if (profile === null)
    throw new RangeError(`${event.type} before profile.created: the history is incomplete`);
  switch (event.type) {
    case 'profile.writer-admitted':
      return { ...profile, writer: event.data.sessionId };
    case 'profile.version-saved': {
      const { kept, ...version } = event.data;
      const versions = [...profile.versions, version].slice(-Math.min(kept, versionsMax));
      return { ...profile, latest: version.version, versions };
    }
    case 'profile.removed':
      return { ...profile, writer: null, versions: [], removedAt: event.data.at };
    case 'profile.carried-forward':
      return profile;
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
