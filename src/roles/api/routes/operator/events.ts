import { Type } from 'typebox';
import type { RecordedEvent } from '#events/events.ts';
import { filters, filtersOfKind, type AggregateKind } from '#events/subjects.ts';
import { sequenceAt } from '#src/kernel/event-store/load-state.ts';
import { readBackwards } from '#src/kernel/event-store/read-backwards.ts';
import { describeEvent } from '#src/kernel/history/describe-event.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { invalid } from '../../http/validation.ts';
import { Words } from '../../schemas/fields.ts';
import { AGGREGATE_KINDS, OperatorEvents } from '../../schemas/operator.ts';
import { beforeParameter, limitParameter } from '../../schemas/paging.ts';
import { asOfParameter, readAsOf } from '../../time-travel/as-of.ts';

const LIMIT = { default: 50, max: 200 };

const identifier = (description: string) =>
  Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description }));

const EventsQuery = Type.Object(
  {
    kind: Type.Optional(
      Words(AGGREGATE_KINDS, {
        description: 'only of these aggregates: a workload is a browser',
        refusal: (kind: unknown) =>
          invalid({ kind, known: AGGREGATE_KINDS }, 'There is no such kind of aggregate.'),
      }),
    ),
    organization: identifier('only of this organization; not for events of the fleet'),
    id: identifier('only of this session, server or browser; `kind` names which'),
    limit: limitParameter(LIMIT.default, LIMIT.max),
    before: beforeParameter,
    ...asOfParameter,
  },
  { additionalProperties: false },
);

/** GET /api/operator/events: what happened, of all organizations and of the fleet. */
export function operatorEvents(
  server: ApiServer,
  { context }: Pick<ApiDependencies, 'context'>,
): void {
  server.route({
    method: 'GET',
    url: '/api/operator/events',
    schema: {
      operationId: 'listOperatorEvents',
      tags: ['Operator'],
      summary: 'All events that are not archived, newest first, each as a sentence',
      querystring: EventsQuery,
      response: { 200: response('A page, newest first', OperatorEvents) },
    },
    config: { action: 'operator', refusals: [] },
    async handler(request, reply) {
      const { limit = LIMIT.default, before, as_of } = request.query;
      const subjects = subjectsOf(request.query);
      if (subjects.length === 0) {
        const { organization, id, kind } = request.query;
        const sentence =
          'Servers and browsers are of no organization; ' +
          'id needs the kind session, server or workload.';
        return sendRejection(reply, invalid({ organization, id, kind }, sentence));
      }
      const at = readAsOf(as_of, context.now());
      if (at !== null && typeof at !== 'number') return sendRejection(reply, at);
      const { eventStore } = context;
      const last = at === null ? await eventStore.lastSequence() : await sequenceAt(context, at);
      const upTo = before === undefined ? last : Math.min(last, Number(before) - 1);
      const range = { subjects, upTo, limit };
      const { found, reached } = await readBackwards(eventStore, range, (event) => event);
      const next = reached > 0 ? String(reached + 1) : null;
      return reply.send({ events: found.map(presented), next });
    },
  });
}

type Asked = { kind?: string; organization?: string; id?: string };

/** Empty: no event can be of such an aggregate. */
function subjectsOf({ kind, organization, id }: Asked): string[] {
  const of = {
    ...(organization !== undefined && { organizationId: organization }),
    ...(id !== undefined && { id }),
  };
  if (kind !== undefined) {
    const hasId = kind !== 'ledger' && kind !== 'organization';
    return id !== undefined && !hasId ? [] : filtersOfKind(kind as AggregateKind, of);
  }
  if (id !== undefined) return [];
  if (organization === undefined) return filters.all;
  return (['session', 'ledger', 'organization', 'profile'] as const).flatMap((one) =>
    filtersOfKind(one, of),
  );
}

function presented(event: RecordedEvent) {
  const { sequence, id, type, time, aggregate, metadata } = event;
  return {
    sequence,
    id,
    type,
    time,
    kind: aggregate.kind,
    organization_id: 'organizationId' in aggregate ? aggregate.organizationId : null,
    aggregate_id: 'id' in aggregate ? aggregate.id : aggregate.organizationId,
    actor: metadata.actor,
    sentence: describeEvent(event),
  };
}
