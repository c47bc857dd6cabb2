import { expect, it, test } from 'vitest';
import { Role, tierNames } from '#events/organization.ts';
import { allCommands, usageOf } from '#src/apps/cli/usage/all.ts';
import { policies } from '#src/kernel/domain/fleet/pool-policy.ts';

test.each(allCommands)('the code of bss $name is where the table says', async ({ load }) => {
  expect(await load()).toEqual(expect.objectContaining({ read: expect.any(Function) }));
});

/** The help loads no other code, so it spells these words out. */
it('names the tiers, roles and pool policies that there are', () => {
  const roles = Role.anyOf.map((role) => role.const);
  expect(usageOf('orgs create').options['tier']?.meaning).toBe(tierNames.join(', '));
  expect(usageOf('keys issue').options['role']?.meaning).toBe(roles.join(', '));
  const versions = policies.join(', ');
  expect(usageOf('pool simulate').options['policy']?.meaning).toContain(`of ${versions};`);
});
