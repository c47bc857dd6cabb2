import packageJson from '../../../../package.json' with { type: 'json' };
import type { ApiParts } from '../../dependencies.ts';
import type { Route } from '../../http/route.ts';
import { Health } from '../../schemas/sessions.ts';

/**
 * GET /api/health: always 200; the words say how it is. Asks nobody, so that it answers when others
 * do not.
 */
export function serviceHealth({ health, desk }: ApiParts): Route {
  return {
    method: 'GET',
    path: '/api/health',
    operationId: 'getHealth',
    summary: 'Health, without credentials',
    details: 'Answers 200 in any health: the words say how it is. Readiness is `/api/ready`.',
    action: 'public',
    answer: { status: 200, schema: Health, description: 'healthy, degraded or unhealthy' },
    refusals: [],
    handle: (_request, reply) =>
      reply.send({
        status: health.overall(),
        service: packageJson.name,
        version: packageJson.version,
        timestamp: new Date(desk.now()).toISOString(),
        dependencies: {
          database: health.database(),
          autoscaler: health.autoscaler(),
          rate_limit: health.rateLimit(),
        },
      }),
  };
}
