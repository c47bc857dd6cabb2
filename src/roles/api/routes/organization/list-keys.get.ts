import type { ApiKey } from '#events/organization.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { KeyList } from '../../schemas/organization.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { response, type ApiServer } from '../../http/route.ts';

/** GET /api/keys: the organization's live keys, from the event store; never a key itself. */
export function listKeys(server: ApiServer, { context }: Pick<ApiDependencies, 'context'>): void {
  server.route({
    method: 'GET',
    url: '/api/keys',
    schema: {
      operationId: 'listKeys',
      tags: ['Organization'],
      summary: "List the organization's live API keys",
      response: { 200: response('At most 200, oldest first', KeyList) },
    },
    config: { action: 'administer', refusals: [] },
    async handler({ caller: { organizationId } }, reply) {
      const organization = { kind: 'organization', organizationId } as const;
      const fresh = { fromLeader: true };
      const { state } = await loadState<'organization'>(context.eventStore, organization, fresh);
      return reply.send({ keys: (state?.keys ?? []).map(presentKey) });
    },
  });
}

/** The key's fields in every answer. */
export function presentKey({ keyId, role, userId, issuedAt }: ApiKey) {
  return { key_id: keyId, role, user_id: userId, issued_at: issuedAt ?? null };
}
