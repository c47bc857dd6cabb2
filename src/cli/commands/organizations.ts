import { isOf, type RecordedOf } from '#events/events.ts';
import type { OrganizationState } from '#events/organization.ts';
import { filters } from '#events/subjects.ts';
import { evolve } from '#src/event-store/load-state.ts';
import type { Command } from '../command.ts';
import { layOut } from '../output.ts';
import { readEvents } from '../read-events.ts';

type Known = { state: OrganizationState; createdAt: string };

export const listOrganizations: Command = {
  name: 'orgs list',
  summary: 'List the organizations',
  options: {},
  read() {
    return async ({ desk, warn }) => {
      const known = new Map<string, Known>();
      for await (const event of readEvents(desk.log, filters.organizations, warn))
        if (isOf('organization', event)) apply(known, event);
      const json = [...known.values()].map(({ state, createdAt }) => ({
        organization_id: state.id,
        name: state.name,
        tier: state.tier,
        live_keys: state.keys.length,
        created_at: createdAt,
      }));
      const rows = json.map((row) => Object.values(row).map(String));
      const lines = layOut(['ORGANIZATION', 'NAME', 'TIER', 'KEYS', 'CREATED'], rows);
      return { json, text: lines.join('\n') };
    };
  },
};

function apply(known: Map<string, Known>, event: RecordedOf<'organization'>): void {
  const before = known.get(event.aggregate.organizationId) ?? null;
  const state = evolve<'organization'>(event.aggregate, before?.state ?? null, event);
  known.set(state.id, { state, createdAt: before?.createdAt ?? event.time });
}
