import { response, type ApiServer } from '../../http/route.ts';
import { Operator } from '../../schemas/operator.ts';

/** GET /api/operator: whether there are operators' routes, and the credential is right. */
export function getOperator(server: ApiServer): void {
  server.route({
    method: 'GET',
    url: '/api/operator',
    schema: {
      operationId: 'getOperator',
      tags: ['Operator'],
      summary: 'Whether this credential is an operator’s',
      response: { 200: response('It is', Operator) },
    },
    config: { action: 'operator', refusals: [] },
    handler: (_, reply) => reply.send({ operator: true }),
  });
}
