import { tierNames } from '#events/organization.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import { readOrganizations } from '#src/commands/operator/organizations.ts';
import { oneOf, textUpTo, integer } from '../arguments.ts';
import type { Command } from '../command.ts';
import { operatorMetadata } from '../operator.ts';
import { formatTable } from '../output.ts';
import { creditsMax } from './credits.ts';

export const createOrganization: Command = {
  makesStreams: true,
  read(options) {
    const name = options.required('name', textUpTo(128));
    const tier = options.required('tier', oneOf(tierNames));
    const asked = options.optional('credits', integer(0, creditsMax));
    return async ({ context, config }) => {
      const id = newId('org');
      const credits = asked ?? config.tiers[tier].credits;
      const organization = { id, name, tier, credits };
      const handled = await registerOrganization(context, organization, operatorMetadata());
      if (isRejection(handled)) return handled;
      const text = `${id}: ${name}, tier ${tier}, ${credits} credits`;
      return { json: { organization_id: id }, text };
    };
  },
};

export const listOrganizations: Command = {
  read() {
    return async ({ context, warn }) => {
      const known = await readOrganizations(context.eventStore, warn);
      const json = known.map(({ state, createdAt }) => ({
        organization_id: state.id,
        name: state.name,
        tier: state.tier,
        live_keys: state.keys.length,
        created_at: createdAt,
      }));
      const rows = json.map((row) => Object.values(row).map(String));
      const lines = formatTable(['ORGANIZATION', 'NAME', 'TIER', 'KEYS', 'CREATED'], rows);
      return { json, text: lines.join('\n') };
    };
  },
};
