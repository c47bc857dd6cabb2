import { tierNames } from '#events/organization.ts';
import { isRejected } from '../errors.ts';
import { newId } from '../ids.ts';
import { registerOrganization } from '../commands/register-organization.ts';
import type { Command } from './command.ts';
import { creditsMax } from './commands/credits.ts';
import { asOneOf, asText, asWhole } from './arguments.ts';
import { operatorCause } from './operator.ts';

export const createOrganization: Command = {
  name: 'orgs create',
  summary: 'Register an organization with its first credits',
  options: {
    name: { value: 'NAME', meaning: '1 to 128 characters' },
    tier: { value: 'TIER', meaning: tierNames.join(', ') },
    credits: { value: 'N', meaning: 'its balance; default: what the tier begins with' },
  },
  makesLog: true,
  read(given) {
    const name = given.required('name', asText(128));
    const tier = given.required('tier', asOneOf(tierNames));
    const asked = given.optional('credits', asWhole(0, creditsMax));
    return async ({ desk, config }) => {
      const id = newId('org');
      const credits = asked ?? config.tiers[tier].credits;
      const organization = { id, name, tier, credits };
      const handled = await registerOrganization(desk, organization, operatorCause());
      if (isRejected(handled)) return handled;
      const text = `${id}: ${name}, tier ${tier}, ${credits} credits`;
      return { json: { organization_id: id }, text };
    };
  },
};
