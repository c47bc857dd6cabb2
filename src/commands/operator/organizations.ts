import { isOf } from '#events/events.ts';
import type { OrganizationState } from '#events/organization.ts';
import { filters } from '#events/subjects.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';

export type KnownOrganization = { state: OrganizationState; createdAt: string };

/**
 * All organizations, in the order of their registration.
 * @param warn called for each event that cannot be read
 * @throws Unavailable
 */
export async function readOrganizations(
  eventStore: EventStore,
  warn: (text: string) => void,
): Promise<KnownOrganization[]> {
  const known = new Map<string, KnownOrganization>();
  for await (const event of readEvents(eventStore, filters.organizations, warn)) {
    if (!isOf('organization', event)) continue;
    const before = known.get(event.aggregate.organizationId) ?? null;
    const state = evolve<'organization'>(event.aggregate, before?.state ?? null, event);
    known.set(state.id, { state, createdAt: before?.createdAt ?? event.time });
  }
  return [...known.values()];
}
