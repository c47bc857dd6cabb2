import { versionsMax } from '#events/profile.ts';
import { integer, mebibytes, type Values, variable } from './parse.ts';

export type ProfilesConfig = {
  /** How many versions of a profile are kept. */
  versions: number;
  /** The largest profile, uncompressed. */
  bytesMax: number;
};

export const profilesVariables = {
  PROFILE_VERSIONS: variable(
    integer(1, versionsMax),
    '10',
    `versions kept of a profile, at most ${versionsMax}`,
  ),
  PROFILE_MB_MAX: variable(
    mebibytes(1, 4096),
    '256',
    'largest profile that is saved, uncompressed and without caches',
  ),
} as const;

/** @throws BadConfig naming the variable that is wrong */
export function readProfiles(values: Values<typeof profilesVariables>): ProfilesConfig {
  return { versions: values.PROFILE_VERSIONS, bytesMax: values.PROFILE_MB_MAX };
}
