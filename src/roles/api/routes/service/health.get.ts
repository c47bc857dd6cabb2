import packageJson from '../../../../../package.json' with { type: 'json' };
import { refuseReboundName } from '#src/kernel/telemetry/local-host.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { Health } from '../../schemas/sessions.ts';

/** GET /api/health: always 200; the body has the states. Needs no other part to answer. */
export function serviceHealth(
  server: ApiServer,
  { health, context, ownHosts }: Pick<ApiDependencies, 'health' | 'context' | 'ownHosts'>,
): void {
  server.route({
    method: 'GET',
    url: '/api/health',
    schema: {
      operationId: 'getHealth',
      tags: ['Service'],
      summary: 'Health, without credentials',
      description:
        'Answers 200; the body has the health. For readiness use `/api/ready`. A client on this ' +
        'machine asks by an address, `localhost` or a configured name.',
      response: { 200: response('healthy, degraded or unhealthy', Health) },
    },
    config: { action: 'public', isUnlimited: true, refusals: ['NOT_FOUND'] },
    handler(request, reply) {
      const { ip: address, headers, url } = request;
      const refusal = refuseReboundName({ address, headers }, ownHosts, url);
      if (refusal !== null) return sendRejection(reply, refusal);
      return reply.send({
        status: health.overall(),
        service: packageJson.name,
        version: packageJson.version,
        timestamp: new Date(context.now()).toISOString(),
        dependencies: {
          database: health.database(),
          autoscaler: health.autoscaler(),
          rate_limit: health.rateLimit(),
          object_store: health.objectStore(),
        },
      });
    },
  });
}
