import { Type } from 'typebox';
import { isOf, type RecordedEvent } from '#events/events.ts';
import { filters, streamFilter } from '#events/subjects.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { sequenceAt } from '#src/kernel/event-store/load-state.ts';
import { readBackwards } from '#src/kernel/event-store/read-backwards.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { PoolQuery, type createPoolSeries } from '../../operator/pool-query.ts';
import { PoolDecisions, PoolSeries } from '../../schemas/operator.ts';
import { beforeParameter, limitParameter } from '../../schemas/paging.ts';
import { asOfParameter, readAsOf } from '../../time-travel/as-of.ts';

const LIMIT = { default: 50, max: 200 };

const DecisionsQuery = Type.Object(
  {
    server: Type.Optional(
      Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'only of this server' }),
    ),
    limit: limitParameter(LIMIT.default, LIMIT.max),
    before: beforeParameter,
    ...asOfParameter,
  },
  { additionalProperties: false },
);

/** GET /api/operator/pool and /pool/decisions: the pool over time, and why its size changed. */
export function operatorPool(
  server: ApiServer,
  dependencies: Pick<ApiDependencies, 'context'>,
  series: ReturnType<typeof createPoolSeries>,
): void {
  server.route({
    method: 'GET',
    url: '/api/operator/pool',
    schema: {
      operationId: 'getOperatorPool',
      tags: ['Operator'],
      summary: 'The pool over time, with all waiting sessions',
      querystring: PoolQuery,
      response: { 200: response('Its counters, step by step', PoolSeries) },
    },
    config: { action: 'operator', refusals: [] },
    async handler(request, reply) {
      const found = await series(null, request.query);
      return isRejection(found) ? sendRejection(reply, found) : reply.send(found);
    },
  });
  server.route({
    method: 'GET',
    url: '/api/operator/pool/decisions',
    schema: {
      operationId: 'listPoolDecisions',
      tags: ['Operator'],
      summary: 'The autoscaler’s decisions with their inputs, newest first',
      querystring: DecisionsQuery,
      response: { 200: response('A page, newest first', PoolDecisions) },
    },
    config: { action: 'operator', refusals: [] },
    async handler(request, reply) {
      const { context } = dependencies;
      const { eventStore } = context;
      const { server: id, limit = LIMIT.default, before, as_of } = request.query;
      const at = readAsOf(as_of, context.now());
      if (at !== null && typeof at !== 'number') return sendRejection(reply, at);
      const last = at === null ? await eventStore.lastSequence() : await sequenceAt(context, at);
      const upTo = before === undefined ? last : Math.min(last, Number(before) - 1);
      const subjects =
        id === undefined ? filters.poolDecisions : [streamFilter({ kind: 'server', id })];
      const range = { subjects, upTo, limit };
      const { found: decisions, reached } = await readBackwards(eventStore, range, decisionOf);
      const next = reached > 0 ? String(reached + 1) : null;
      return reply.send({ decisions, next });
    },
  });
}

function decisionOf(event: RecordedEvent) {
  if (!isOf('server', event) || event.type !== 'server.pool-resized') return null;
  const { sequence, time, aggregate, data } = event;
  return { sequence, time, server_id: aggregate.id, ...data };
}
