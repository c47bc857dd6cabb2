import { Type } from 'typebox';
import { isOf, type RecordedOf } from '#events/events.ts';
import { filters, streamFilter } from '#events/subjects.ts';
import { isRejection } from '#src/errors.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { sequenceAt } from '#src/event-store/load-state.ts';
import { refuseUnknown } from '#src/event-store/unreadable.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { invalid } from '../../http/validation.ts';
import { PoolQuery, type createPoolSeries } from '../../operator/pool-query.ts';
import { PoolDecisions, PoolSeries } from '../../schemas/operator.ts';
import { limitParameter } from '../../schemas/paging.ts';
import { asOfParameter, readAsOf } from '../../time-travel/as-of.ts';

const LIMIT = { default: 50, max: 200 };

const DecisionsQuery = Type.Object(
  {
    server: Type.Optional(
      Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'only of this server' }),
    ),
    limit: limitParameter(LIMIT.default, LIMIT.max),
    before: Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,15}$',
        description: '`next` of the previous page',
        refusal: (before: unknown) =>
          invalid({ before }, 'before must be what a page gave as next.'),
      }),
    ),
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
      const { found, reached } = await readBackwards(eventStore, id ?? null, upTo, limit);
      const decisions = found.map(({ sequence, time, aggregate, data }) => ({
        sequence,
        time,
        server_id: aggregate.id,
        ...data,
      }));
      const next = reached > 0 ? String(reached + 1) : null;
      return reply.send({ decisions, next });
    },
  });
}

type Resized = Extract<RecordedOf<'server'>, { type: 'server.pool-resized' }>;

/** Sequences that the first step back covers; each further one covers four times as many. */
const STEP = 5_000;
const STEPS_MAX = 6;

/**
 * The newest decisions up to a sequence, newest first. The store reads forwards only, so ever
 * longer ranges are read, from the end; `reached` is where the next page ends, 0 at the beginning.
 */
async function readBackwards(
  eventStore: EventStore,
  id: string | null,
  upTo: number,
  limit: number,
): Promise<{ found: Resized[]; reached: number }> {
  const { firstSequence } = await eventStore.info();
  const subjects = id === null ? filters.poolDecisions : [streamFilter({ kind: 'server', id })];
  const found: Resized[] = [];
  let end = upTo;
  for (let step = 0; step < STEPS_MAX && end >= firstSequence; step += 1) {
    const after = Math.max(firstSequence - 1, end - STEP * 4 ** step);
    const some: Resized[] = [];
    const range = { subjects, after, upTo: end, onUnreadable: refuseUnknown };
    for await (const batch of eventStore.read(range))
      for (const event of batch)
        if (isOf('server', event) && event.type === 'server.pool-resized') {
          some.push(event);
          // Of a range with many more only the newest are of use.
          if (some.length > limit) some.shift();
        }
    found.push(...some.toReversed());
    const last = found[limit - 1];
    if (last !== undefined) return { found: found.slice(0, limit), reached: last.sequence - 1 };
    end = after;
  }
  return { found, reached: end >= firstSequence ? end : 0 };
}
