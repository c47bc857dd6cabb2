import { versionsMax } from '#events/profile.ts';
import { integer, type Read } from './parse.ts';

export type ProfilesConfig = {
  /** How many versions of a profile are kept. */
  versions: number;
  /** The largest profile, uncompressed. */
  bytesMax: number;
};

export const profilesVariables = {
  PROFILE_VERSIONS: {
    fallback: '10',
    meaning: `versions kept of a profile, at most ${versionsMax}`,
  },
  PROFILE_MB_MAX: {
    fallback: '256',
    meaning: 'largest profile that is saved, uncompressed and without caches',
  },
} as const;
type Name = keyof typeof profilesVariables;

const MIB = 1024 ** 2;

/** @throws BadConfig naming the variable that is wrong */
export function readProfiles(read: Read<Name>): ProfilesConfig {
  return {
    versions: integer('PROFILE_VERSIONS', read, 1, versionsMax),
    bytesMax: integer('PROFILE_MB_MAX', read, 1, 4096) * MIB,
  };
}
