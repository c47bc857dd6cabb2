import type { createWaitingPlaces } from '../../sessions/waiting-places.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { Queue } from '../../schemas/operator.ts';

/** Sessions of one answer; `total` counts the others. */
export const QUEUE_SHOWN_MAX = 1_000;

/** GET /api/operator/queue: the sessions of all organizations that wait for a server. */
export function operatorQueue(
  server: ApiServer,
  waitingPlaces: ReturnType<typeof createWaitingPlaces>,
): void {
  server.route({
    method: 'GET',
    url: '/api/operator/queue',
    schema: {
      operationId: 'getOperatorQueue',
      tags: ['Operator'],
      summary: 'Who waits for a browser, and why',
      response: { 200: response('The queue of all organizations', Queue) },
    },
    config: { action: 'operator', refusals: [] },
    async handler(_, reply) {
      const waiting = await waitingPlaces(null);
      return reply.send({ waiting: waiting.slice(0, QUEUE_SHOWN_MAX), total: waiting.length });
    },
  });
}
