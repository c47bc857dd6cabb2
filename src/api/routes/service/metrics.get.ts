import { Type } from 'typebox';
import { refuseMetrics } from '#src/telemetry/metrics-access.ts';
import { METRICS_TYPE } from '#src/telemetry/metrics-listener.ts';
import type { ApiParts } from '../../dependencies.ts';
import { refuse } from '../../http/error-response.ts';
import type { Route } from '../../http/route.ts';

/** GET /metrics: what this process counts and measures, for Prometheus. */
export function serviceMetrics({ metrics, metricsToken }: ApiParts): Route {
  return {
    method: 'GET',
    path: '/metrics',
    operationId: 'getMetrics',
    summary: 'Metrics of this process, for Prometheus',
    details:
      'For clients on the same machine alone, and not by way of a proxy; for others there is ' +
      'nothing here. Where `METRICS_TOKEN` is set, whoever has it as bearer may read them, and ' +
      'nobody else.',
    action: 'public',
    answer: {
      status: 200,
      contentType: METRICS_TYPE,
      schema: Type.String(),
      description: 'Text format 0.0.4',
    },
    refusals: ['UNAUTHORIZED', 'NOT_FOUND'],
    async handle(request, reply) {
      const { headers, socket } = request.raw;
      const refusal = refuseMetrics({ address: socket.remoteAddress, headers }, metricsToken);
      if (refusal !== null) return refuse(reply, refusal);
      return reply.type(METRICS_TYPE).send(await metrics.text());
    },
  };
}
