import { isOf } from '#events/events.ts';
import type { ProfileState } from '#events/profile.ts';
import { filters } from '#events/subjects.ts';
import type { Projection } from './projection.ts';

/** The profiles of each organization; one that is removed has no view. */
export const profiles: Projection<ProfileState> = {
  name: 'profiles',
  version: 1,
  subjects: filters.profiles,
  key(event) {
    return isOf('profile', event)
      ? profileKey(event.aggregate.organizationId, event.aggregate.id)
      : null;
  },
  aggregateOf(key) {
    const [organizationId = '', id = ''] = key.split('/');
    return { kind: 'profile', organizationId, id };
  },
  view(event) {
    if (!isOf('profile', event)) return null;
    return event.state.removedAt === null ? event.state : null;
  },
  /** By their creation. */
  lists(view) {
    const names = [profilesOf(view.organizationId)];
    return { names, order: Date.parse(view.createdAt) };
  },
};

/** All profiles of an organization. */
export function profilesOf(organizationId: string): string {
  return `${organizationId}/all`;
}

/** The organization is part of the key: a lookup never finds another organization's profile. */
export function profileKey(organizationId: string, id: string): string {
  return `${organizationId}/${id}`;
}
