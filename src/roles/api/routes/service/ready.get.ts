import { reject } from '#src/kernel/errors.ts';
import { refuseReboundName } from '#src/kernel/telemetry/local-host.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { Readiness } from '../../schemas/sessions.ts';

/** Unavailable dependencies are retried continuously; a second later they may be back. */
const RETRY_AFTER_SECONDS = 1;

/** GET /api/ready: 200 while this process can serve requests, else 503 with what is missing. */
export function serviceReady(
  server: ApiServer,
  { health, readers, ownHosts }: Pick<ApiDependencies, 'health' | 'readers' | 'ownHosts'>,
): void {
  server.route({
    method: 'GET',
    url: '/api/ready',
    schema: {
      operationId: 'getReadiness',
      tags: ['Service'],
      summary: 'Readiness, without credentials',
      description:
        'Whether this process can serve requests, for a load balancer. The state of the other ' +
        'parts is in `/api/health`. Without a live server for browsers, creating a session ' +
        'answers 503 (`NO_SERVERS_AVAILABLE`), and all other requests work.',
      response: { 200: response('This process can serve requests', Readiness) },
    },
    config: { action: 'public', isUnlimited: true, refusals: ['NOT_FOUND', 'UNAVAILABLE'] },
    handler(request, reply) {
      const { ip: address, headers, url } = request;
      const refusal = refuseReboundName({ address, headers }, ownHosts, url);
      if (refusal !== null) return sendRejection(reply, refusal);
      const missing = health.missing();
      const silences = { reader_silence_seconds: readers.silences() };
      if (missing.length === 0) return reply.send({ ready: true, ...silences });
      const message = `Waiting for: ${missing.join(', ')}.`;
      const more = { message, retryAfterSeconds: RETRY_AFTER_SECONDS };
      return sendRejection(
        reply,
        reject('UNAVAILABLE', { waiting_for: missing, ...silences }, more),
      );
    },
  });
}
