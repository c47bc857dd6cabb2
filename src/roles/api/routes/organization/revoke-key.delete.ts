import { isId } from '#events/subjects.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { mayGrant } from '#src/kernel/domain/organization/roles.ts';
import { RevokedKey } from '../../schemas/organization.ts';
import { KeyPath } from '../../schemas/requests.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';

/**
 * DELETE /api/keys/{key_id}: once it is answered, this process refuses the key; other processes do
 * some milliseconds later. For another organization's key the answer is that it does not exist.
 */
export function revokeKey(
  server: ApiServer,
  { context, credentials }: Pick<ApiDependencies, 'context' | 'credentials'>,
): void {
  server.route({
    method: 'DELETE',
    url: '/api/keys/:key_id',
    schema: {
      operationId: 'revokeKey',
      tags: ['Organization'],
      summary: 'Revoke an API key',
      description:
        'This process refuses the key once it has answered, all others within two seconds. By ' +
        'then the session addresses that were issued to the key are refused, and its event ' +
        'streams and its connections to browsers are closed. Only an owner may revoke a key ' +
        'with the role `owner`.',
      params: KeyPath,
      response: { 200: response('It is revoked', RevokedKey) },
    },
    config: { action: 'administer', refusals: ['KEY_NOT_FOUND'], cost: costs.changeKey },
    async handler(request, reply) {
      const { key_id: keyId } = request.params;
      const unknown = reject('KEY_NOT_FOUND', { key_id: keyId });
      if (!isId(keyId)) return sendRejection(reply, unknown);
      const { organizationId, role } = request.caller;
      const revoked = await handleCommand<'organization'>(
        context,
        { kind: 'organization', organizationId },
        (organization) => {
          const key = organization?.keys.find((one) => one.keyId === keyId);
          if (key === undefined) return unknown;
          return mayGrant(role, key.role)
            ? decideOrganization({ type: 'RevokeKey', keyId }, organization)
            : reject('FORBIDDEN', { role, action: 'revoke an owner key' });
        },
        requestMetadata(request, request.caller),
      );
      if (isRejection(revoked)) return sendRejection(reply, revoked);
      await credentials.reached(revoked.sequence);
      const message = `Key ${keyId} has been revoked; its connections are being closed.`;
      return reply.send({ message, key_id: keyId });
    },
  });
}
