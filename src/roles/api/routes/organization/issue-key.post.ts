import { isRejection, reject } from '#src/kernel/errors.ts';
import { hashKey, newApiKey, newId } from '#src/kernel/ids.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { mayGrant } from '#src/kernel/domain/organization/roles.ts';
import { IssuedKey, IssueKeyBody } from '../../schemas/organization.ts';
import { presentKey } from './list-keys.get.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';

/**
 * POST /api/keys: issues a key of the organization and shows it this once; events have only its
 * hash.
 */
export function issueKey(
  server: ApiServer,
  { context, credentials }: Pick<ApiDependencies, 'context' | 'credentials'>,
): void {
  server.route({
    method: 'POST',
    url: '/api/keys',
    schema: {
      operationId: 'issueKey',
      tags: ['Organization'],
      summary: 'Issue an API key',
      description:
        'Only this answer contains the key: the service stores its hash. The key is valid once ' +
        'the request is answered. Only an owner may issue a key with the role `owner`.',
      body: IssueKeyBody,
      response: { 201: response('The key', IssuedKey) },
    },
    config: { action: 'administer', refusals: [], cost: costs.changeKey },
    async handler(request, reply) {
      const { caller } = request;
      const { role, user_id: userId = caller.userId } = request.body;
      if (!mayGrant(caller.role, role))
        return sendRejection(
          reply,
          reject('FORBIDDEN', { role: caller.role, action: 'issue an owner key' }),
        );
      const { organizationId } = caller;
      const apiKey = newApiKey(organizationId);
      const issuedAt = new Date(context.now()).toISOString();
      const key = { keyId: newId('key'), hash: hashKey(apiKey), role, userId, issuedAt };
      const issued = await handleCommand<'organization'>(
        context,
        { kind: 'organization', organizationId },
        (organization) => decideOrganization({ type: 'IssueKey', key }, organization),
        requestMetadata(request, caller),
      );
      if (isRejection(issued)) return sendRejection(reply, issued);
      await credentials.reached(issued.sequence);
      return reply.code(201).send({ ...presentKey(key), api_key: apiKey });
    },
  });
}
