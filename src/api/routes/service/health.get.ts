import packageJson from '../../../../package.json' with { type: 'json' };
import type { ApiDependencies } from '../../dependencies.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { Health } from '../../schemas/sessions.ts';

/** GET /api/health: always 200; the body has the states. Needs no other part to answer. */
export function serviceHealth(
  server: ApiServer,
  { health, context }: Pick<ApiDependencies, 'health' | 'context'>,
): void {
  server.route({
    method: 'GET',
    url: '/api/health',
    schema: {
      operationId: 'getHealth',
      tags: ['Service'],
      summary: 'Health, without credentials',
      description: 'Always answers 200; the body has the health. For readiness use `/api/ready`.',
      response: { 200: response('healthy, degraded or unhealthy', Health) },
    },
    config: { action: 'public', isUnlimited: true, refusals: [] },
    handler: (_request, reply) =>
      reply.send({
        status: health.overall(),
        service: packageJson.name,
        version: packageJson.version,
        timestamp: new Date(context.now()).toISOString(),
        dependencies: {
          database: health.database(),
          autoscaler: health.autoscaler(),
          rate_limit: health.rateLimit(),
        },
      }),
  });
}
