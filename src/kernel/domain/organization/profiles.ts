import type { OrganizationEvent, OrganizationState } from '#events/organization.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { profilesMax } from '../profile/profile.ts';

export type ProfileCountCommand =
  /** `counted`: how many there are, for an organization that has not counted them yet. */
  | { type: 'CountProfile'; profileId: string; counted: number }
  | { type: 'UncountProfile'; profileId: string };

/** Decided in one batch with the profile's own event, so that the number is exact. */
export function decideProfileCount(
  command: ProfileCountCommand,
  { profiles }: Pick<OrganizationState, 'profiles'>,
): OrganizationEvent[] | Rejection {
  const { profileId } = command;
  if (command.type === 'UncountProfile')
    return profiles === undefined
      ? []
      : [{ type: 'organization.profile-removed', data: { profileId } }];
  const before = profiles ?? command.counted;
  if (before >= profilesMax) return reject('PROFILE_LIMIT_EXCEEDED', { limit: profilesMax });
  return [{ type: 'organization.profile-added', data: { profileId, before } }];
}
