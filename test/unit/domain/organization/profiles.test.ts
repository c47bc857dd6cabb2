import { expect, test } from 'vitest';
import { decideProfileCount } from '#src/kernel/domain/organization/profiles.ts';
import { profilesMax } from '#src/kernel/domain/profile/profile.ts';

const add = { type: 'CountProfile', profileId: 'prf_1', counted: 7 } as const;
const remove = { type: 'UncountProfile', profileId: 'prf_1' } as const;
const added = (before: number) => [
  { type: 'organization.profile-added', data: { profileId: 'prf_1', before } },
];

test('the first profile that is counted begins with those that are there', () => {
  expect(decideProfileCount(add, {})).toEqual(added(7));
  expect(decideProfileCount(add, { profiles: 3 })).toEqual(added(3));
});

test('the limit is decided on what the organization has counted', () => {
  const full = { code: 'PROFILE_LIMIT_EXCEEDED', context: { limit: profilesMax } };
  expect(decideProfileCount(add, { profiles: profilesMax })).toMatchObject(full);
  expect(decideProfileCount({ ...add, counted: profilesMax }, {})).toMatchObject(full);
  expect(decideProfileCount({ ...add, counted: profilesMax }, { profiles: 0 })).toEqual(added(0));
});

test('a removal counts where something was counted', () => {
  expect(decideProfileCount(remove, {})).toEqual([]);
  expect(decideProfileCount(remove, { profiles: 1 })).toEqual([
    { type: 'organization.profile-removed', data: { profileId: 'prf_1' } },
  ]);
});
