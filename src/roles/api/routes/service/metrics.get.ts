import { Type } from 'typebox';
import { refuseMetrics } from '#src/kernel/telemetry/metrics-access.ts';
import { METRICS_TYPE } from '#src/kernel/telemetry/metrics-listener.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';

/** GET /metrics: the counters and measurements of this process, for Prometheus. */
export function serviceMetrics(
  server: ApiServer,
  {
    metrics,
    metricsToken,
    ownHosts,
  }: Pick<ApiDependencies, 'metrics' | 'metricsToken' | 'ownHosts'>,
): void {
  server.route({
    method: 'GET',
    url: '/metrics',
    schema: {
      operationId: 'getMetrics',
      tags: ['Service'],
      summary: 'Metrics of this process, for Prometheus',
      description:
        'Without `METRICS_TOKEN`, only for clients on the same machine that come through no ' +
        'proxy; all others get 404. With `METRICS_TOKEN`, only for clients that send it as ' +
        'bearer token.',
      response: {
        200: response('Text format 0.0.4', Type.String(), { contentType: METRICS_TYPE }),
      },
    },
    config: { action: 'public', isUnlimited: true, refusals: ['UNAUTHORIZED', 'NOT_FOUND'] },
    async handler(request, reply) {
      const { headers, socket } = request.raw;
      const refusal = refuseMetrics(
        { address: socket.remoteAddress, headers },
        metricsToken,
        ownHosts,
      );
      if (refusal !== null) return sendRejection(reply, refusal);
      return reply.type(METRICS_TYPE).send(await metrics.text());
    },
  });
}
