import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { AllowedOrigins, AllowOriginsBody } from '../../schemas/organization.ts';

/** PUT /api/organization/origins: whose pages may embed the screens of shares. */
export function allowOrigins(
  server: ApiServer,
  { context }: Pick<ApiDependencies, 'context'>,
): void {
  server.route({
    method: 'PUT',
    url: '/api/organization/origins',
    schema: {
      operationId: 'allowOrigins',
      tags: ['Organization'],
      summary: 'Allow pages to embed shares',
      description:
        'Replaces the origins of pages that may embed the page of a share in a frame; an empty ' +
        'list allows none. It counts within two seconds, for pages that are loaded then.',
      body: AllowOriginsBody,
      response: { 200: response('The origins', AllowedOrigins) },
    },
    config: { action: 'administer', refusals: [], cost: costs.changeKey },
    async handler(request, reply) {
      const { caller } = request;
      const { organizationId } = caller;
      const origins = [...new Set(request.body.allowed_origins)];
      const odd = origins.find((origin) => !isOrigin(origin));
      if (odd !== undefined)
        return sendRejection(
          reply,
          reject(
            'INVALID_REQUEST',
            { field: 'allowed_origins', origin: odd },
            { message: 'An origin is scheme, host and port, like https://app.example.com.' },
          ),
        );
      const allowed = await handleCommand<'organization'>(
        context,
        { kind: 'organization', organizationId },
        (organization) => decideOrganization({ type: 'AllowOrigins', origins }, organization),
        requestMetadata(request, caller),
      );
      if (isRejection(allowed)) return sendRejection(reply, allowed);
      return reply.send({ allowed_origins: allowed.state.allowedOrigins ?? [] });
    },
  });
}

/** As a browser writes it: no path, no default port, no wildcard. */
function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  return isWeb && url.origin === text && /^[!-~]+$/.test(text) && !/[*;,']/.test(text);
}
