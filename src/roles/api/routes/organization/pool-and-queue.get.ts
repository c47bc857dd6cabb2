import { isRejection } from '#src/kernel/errors.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { PoolQuery, type createPoolSeries } from '../../operator/pool-query.ts';
import { PoolSeries, Queue } from '../../schemas/operator.ts';
import type { createWaitingPlaces } from '../../sessions/waiting-places.ts';
import { QUEUE_SHOWN_MAX } from '../operator/queue.get.ts';

/** GET /api/pool: the service's browsers over time, and how many own sessions waited for one. */
export function organizationPool(
  server: ApiServer,
  series: ReturnType<typeof createPoolSeries>,
): void {
  server.route({
    method: 'GET',
    url: '/api/pool',
    schema: {
      operationId: 'getPool',
      tags: ['Organization'],
      summary: 'The pool over time, with the organization’s waiting sessions',
      querystring: PoolQuery,
      response: { 200: response('Its counters, step by step', PoolSeries) },
    },
    config: { action: 'read', refusals: [], cost: costs.getPool },
    async handler(request, reply) {
      const found = await series(request.caller.organizationId, request.query);
      return isRejection(found) ? sendRejection(reply, found) : reply.send(found);
    },
  });
}

/** GET /api/queue: the organization's sessions that wait for a server, and why. */
export function organizationQueue(
  server: ApiServer,
  waitingPlaces: ReturnType<typeof createWaitingPlaces>,
): void {
  server.route({
    method: 'GET',
    url: '/api/queue',
    schema: {
      operationId: 'getQueue',
      tags: ['Organization'],
      summary: 'Which of the organization’s sessions wait for a browser, and why',
      response: { 200: response('The organization’s part of the queue', Queue) },
    },
    config: { action: 'read', refusals: [], cost: costs.getQueue },
    async handler({ caller: { organizationId } }, reply) {
      const waiting = await waitingPlaces(organizationId);
      return reply.send({ waiting: waiting.slice(0, QUEUE_SHOWN_MAX), total: waiting.length });
    },
  });
}
