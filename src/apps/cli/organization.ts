import type { OrganizationState } from '#events/organization.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import type { Command, Output } from './command.ts';
import { parseId } from './arguments.ts';

/** A command that shows a part of the organization named by `--org`. */
export function organizationCommand(
  show: (organization: OrganizationState, eventStore: EventStore) => Output | Promise<Output>,
): Command {
  return {
    read(options) {
      const id = options.required('org', parseId);
      return async ({ context }) => {
        const organization = await findOrganization(context.eventStore, id);
        return isRejection(organization) ? organization : show(organization, context.eventStore);
      };
    },
  };
}

/** The organization's current state, or NOT_FOUND. */
export async function findOrganization(
  eventStore: EventStore,
  organizationId: string,
): Promise<OrganizationState | Rejection> {
  const aggregate = { kind: 'organization', organizationId } as const;
  const { state } = await loadState<'organization'>(eventStore, aggregate, { fromLeader: true });
  return state ?? organizationNotFound(organizationId);
}

export function organizationNotFound(organizationId: string): Rejection {
  const message = 'There is no organization with this id.';
  return reject('NOT_FOUND', { organization_id: organizationId }, { message });
}
