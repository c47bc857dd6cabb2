import type { OrganizationState } from '#events/organization.ts';
import { isRejected, reject, type Rejected } from '#src/errors.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { load } from '#src/event-store/load-state.ts';
import type { Command, Output } from './command.ts';
import { asId } from './arguments.ts';

/** A command that shows something of the one organization it is given. */
export function showOrganization(
  { name, summary }: Pick<Command, 'name' | 'summary'>,
  show: (organization: OrganizationState, log: EventLog) => Output | Promise<Output>,
): Command {
  return {
    name,
    summary,
    options: { org: { value: 'ID', meaning: 'the organization' } },
    read(given) {
      const id = given.required('org', asId);
      return async ({ desk }) => {
        const organization = await findOrganization(desk.log, id);
        return isRejected(organization) ? organization : show(organization, desk.log);
      };
    },
  };
}

/** The organization as it stands now, or that there is none. */
export async function findOrganization(
  log: EventLog,
  organizationId: string,
): Promise<OrganizationState | Rejected> {
  const aggregate = { kind: 'organization', organizationId } as const;
  const { state } = await load<'organization'>(log, aggregate, { fromLeader: true });
  return state ?? noOrganization(organizationId);
}

export function noOrganization(organizationId: string): Rejected {
  const message = 'There is no organization with this id.';
  return reject('NOT_FOUND', { organization_id: organizationId }, { message });
}
