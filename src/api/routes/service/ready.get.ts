import { reject } from '#src/errors.ts';
import type { ApiParts } from '../../dependencies.ts';
import { refuse } from '../../http/error-response.ts';
import type { Route } from '../../http/route.ts';
import { Readiness } from '../../schemas/sessions.ts';

/** Parts that are away are asked again and again; a second later it may be there. */
const RETRY_AFTER_SECONDS = 1;

/** GET /api/ready: 200 while this process can serve requests, else 503 with what is missing. */
export function serviceReady({ health }: ApiParts): Route {
  return {
    method: 'GET',
    path: '/api/ready',
    operationId: 'getReadiness',
    summary: 'Readiness, without credentials',
    details:
      'Whether this process can serve requests: for a proxy that chooses among several. Whether ' +
      'there are servers for browsers is told by `/api/health`: without one creates answer 503 ' +
      '(`NO_SERVERS_AVAILABLE`), and all else goes on.',
    action: 'public',
    answer: { status: 200, schema: Readiness, description: 'This process can serve requests' },
    refusals: ['UNAVAILABLE'],
    handle(_request, reply) {
      const missing = health.missing();
      if (missing.length === 0) return reply.send({ ready: true });
      const message = `Waiting for: ${missing.join(', ')}.`;
      const more = { message, retryAfterSeconds: RETRY_AFTER_SECONDS };
      return refuse(reply, reject('UNAVAILABLE', { waiting_for: missing }, more));
    },
  };
}
