import type { ApiKey } from '#events/organization.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { load } from '#src/event-store/load-state.ts';
import { KeyList } from '../../schemas/organization.ts';
import type { Caller } from '../../auth/authenticate.ts';
import type { ApiParts } from '../../dependencies.ts';
import type { Route } from '../../http/route.ts';

/** GET /api/keys: the organization's live keys, as the log has them; never a key itself. */
export function listKeys({ desk }: ApiParts): Route {
  async function handle(_: FastifyRequest, reply: FastifyReply, { organizationId }: Caller) {
    const organization = { kind: 'organization', organizationId } as const;
    const { state } = await load<'organization'>(desk.log, organization, { fromLeader: true });
    return reply.send({ keys: (state?.keys ?? []).map(presentKey) });
  }
  return {
    method: 'GET',
    path: '/api/keys',
    operationId: 'listKeys',
    summary: "List the organization's live API keys",
    action: 'administer',
    answer: { status: 200, schema: KeyList, description: 'At most 200, oldest first' },
    refusals: [],
    handle,
  };
}

/** A key as it is told of again and again. */
export function presentKey({ keyId, role, userId, issuedAt }: ApiKey) {
  return { key_id: keyId, role, user_id: userId, issued_at: issuedAt ?? null };
}
