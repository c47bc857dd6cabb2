import { isId } from '#events/subjects.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRejected, reject } from '#src/errors.ts';
import { handle as decideAndAppend } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/domain/organization/organization.ts';
import { mayGrant } from '#src/domain/organization/roles.ts';
import { RevokedKey } from '../../schemas/organization.ts';
import type { Caller } from '../../auth/authenticate.ts';
import { causeOf, type ApiParts } from '../../dependencies.ts';
import { refuse } from '../../http/error-response.ts';
import { parameter, type Route } from '../../http/route.ts';

/**
 * DELETE /api/keys/{key_id}: refused by this process from the answer on, by the others some
 * milliseconds later. Another organization's key is as one that never was.
 */
export function revokeKey({ desk, credentials }: ApiParts): Route {
  async function handle(request: FastifyRequest, reply: FastifyReply, caller: Caller) {
    const keyId = parameter(request, 'key_id');
    const unknown = reject('KEY_NOT_FOUND', { key_id: keyId });
    if (!isId(keyId)) return refuse(reply, unknown);
    const { organizationId, role } = caller;
    const revoked = await decideAndAppend<'organization'>(
      desk,
      { kind: 'organization', organizationId },
      (organization) => {
        const key = organization?.keys.find((one) => one.keyId === keyId);
        if (key === undefined) return unknown;
        return mayGrant(role, key.role)
          ? decideOrganization({ type: 'RevokeKey', keyId }, organization)
          : reject('FORBIDDEN', { role, action: 'revoke an owner key' });
      },
      causeOf(request, caller),
    );
    if (isRejected(revoked)) return refuse(reply, revoked);
    await credentials.reached(revoked.sequence);
    return reply.send({ message: `Key ${keyId} has been revoked.`, key_id: keyId });
  }
  return {
    method: 'DELETE',
    path: '/api/keys/:key_id',
    operationId: 'revokeKey',
    summary: 'Revoke an API key',
    details:
      'The key is refused from this answer on, everywhere within two seconds. Only an owner ' +
      'revokes a key of the role `owner`.',
    action: 'administer',
    answer: { status: 200, schema: RevokedKey, description: 'It is revoked' },
    refusals: ['KEY_NOT_FOUND'],
    handle,
  };
}
