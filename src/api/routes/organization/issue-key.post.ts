import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRejected, reject } from '#src/errors.ts';
import { hashKey, newApiKey, newId } from '#src/ids.ts';
import { handle as decideAndAppend } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/domain/organization/organization.ts';
import { mayGrant } from '#src/domain/organization/roles.ts';
import { IssuedKey, IssueKeyBody } from '../../schemas/organization.ts';
import type { Caller } from '../../auth/authenticate.ts';
import { presentKey } from './list-keys.get.ts';
import { causeOf, type ApiParts } from '../../dependencies.ts';
import { refuse } from '../../http/error-response.ts';
import { createBodyReader } from '../../http/validation.ts';
import type { Route } from '../../http/route.ts';

const readBody = createBodyReader(IssueKeyBody);

/** POST /api/keys: a new key of the organization, told this once; the log has its hash alone. */
export function issueKey({ desk, credentials }: ApiParts): Route {
  async function handle(request: FastifyRequest, reply: FastifyReply, caller: Caller) {
    const body = readBody(request.body);
    if (isRejected(body)) return refuse(reply, body);
    const { role, user_id: userId = caller.userId } = body;
    if (!mayGrant(caller.role, role))
      return refuse(
        reply,
        reject('FORBIDDEN', { role: caller.role, action: 'issue an owner key' }),
      );
    const { organizationId } = caller;
    const apiKey = newApiKey(organizationId);
    const issuedAt = new Date(desk.now()).toISOString();
    const key = { keyId: newId('key'), hash: hashKey(apiKey), role, userId, issuedAt };
    const issued = await decideAndAppend<'organization'>(
      desk,
      { kind: 'organization', organizationId },
      (organization) => decideOrganization({ type: 'IssueKey', key }, organization),
      causeOf(request, caller),
    );
    if (isRejected(issued)) return refuse(reply, issued);
    await credentials.reached(issued.sequence);
    return reply.code(201).send({ ...presentKey(key), api_key: apiKey });
  }
  return {
    method: 'POST',
    path: '/api/keys',
    operationId: 'issueKey',
    summary: 'Issue an API key',
    details:
      'The key is in this answer and nowhere else: only its hash is kept. It is let in from the ' +
      'answer on. Only an owner issues a key of the role `owner`.',
    action: 'administer',
    body: IssueKeyBody,
    answer: { status: 201, schema: IssuedKey, description: 'The key' },
    refusals: [],
    handle,
  };
}
