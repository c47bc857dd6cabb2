import { Type } from 'typebox';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import type { DeadLetter } from '#src/kernel/messaging/dead-letters.ts';
import { retryEvent } from '#src/commands/operator/retry.ts';
import { OPERATOR_ID, type ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { invalid } from '../../http/validation.ts';
import { DeadLetters, DecidedDeadLetter } from '../../schemas/operator.ts';
import { limitParameter } from '../../schemas/paging.ts';

const LIMIT = { default: 100, max: 500 };
/** The reason of a schema mismatch runs to pages. */
const REASON_MAX = 2_000;
export const RETRY_MS = 60_000;

const ListQuery = Type.Object(
  {
    limit: limitParameter(LIMIT.default, LIMIT.max),
    after: Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,5}$',
        description: '`next` of the previous page',
        refusal: (after: unknown) => invalid({ after }, 'after must be what a page gave as next.'),
      }),
    ),
  },
  { additionalProperties: false },
);
const Path = Type.Object({ id: Type.String({ description: 'as the list has it' }) });
const SkipBody = Type.Object(
  {
    reason: Type.String({ minLength: 1, maxLength: 1_024, description: 'kept with the decision' }),
    operator: Type.Optional(
      Type.String({ minLength: 1, maxLength: 128, description: 'who decides; default: api' }),
    ),
  },
  {
    title: 'SkipDeadLetter',
    additionalProperties: false,
    examples: [{ reason: 'a test event', operator: 'ada' }],
  },
);

type Parts = Pick<ApiDependencies, 'context' | 'operator'>;

/** GET /api/operator/dead-letters, POST …/{id}/retry and …/{id}/skip. */
export function operatorDeadLetters(server: ApiServer, dependencies: Parts): void {
  server.route({
    method: 'GET',
    url: '/api/operator/dead-letters',
    schema: {
      operationId: 'listDeadLetters',
      tags: ['Operator'],
      summary: 'Events that a projection or a consumer could not handle',
      querystring: ListQuery,
      response: { 200: response('A page of those without a decision', DeadLetters) },
    },
    config: { action: 'operator', refusals: [] },
    async handler(request, reply) {
      const { limit = LIMIT.default, after = '0' } = request.query;
      const all = await dependencies.operator.deadLetters.list();
      const begin = Number(after);
      const page = all.slice(begin, begin + limit);
      const next = begin + limit < all.length ? String(begin + limit) : null;
      return reply.send({ dead_letters: page.map(present), total: all.length, next });
    },
  });
  retry(server, dependencies);
  skip(server, dependencies);
}

function retry(server: ApiServer, dependencies: Parts): void {
  server.route({
    method: 'POST',
    url: '/api/operator/dead-letters/:id/retry',
    schema: {
      operationId: 'retryDeadLetter',
      tags: ['Operator'],
      summary: 'Have it handled once more',
      params: Path,
      response: { 200: response('What came of it', DecidedDeadLetter) },
    },
    config: { action: 'operator', refusals: ['NOT_FOUND'] },
    async handler(request, reply) {
      const event = await find(dependencies, request.params.id);
      if (isRejection(event)) return sendRejection(reply, event);
      const { context, operator } = dependencies;
      const retried = await retryEvent(
        {
          eventStore: context.eventStore,
          deadLetters: operator.deadLetters,
          openViews: async () => operator.stores,
          signal: AbortSignal.timeout(RETRY_MS),
        },
        event,
      );
      const { outcome } = retried;
      const failure = outcome === 'fails' ? retried.reason.slice(0, REASON_MAX) : null;
      const actor = actorOf(OPERATOR_ID);
      operator.log.info({ actor, ...present(event), outcome, failure }, 'dead letter retried');
      return reply.send({ ...present(event), outcome, failure });
    },
  });
}

function skip(server: ApiServer, dependencies: Parts): void {
  server.route({
    method: 'POST',
    url: '/api/operator/dead-letters/:id/skip',
    schema: {
      operationId: 'skipDeadLetter',
      tags: ['Operator'],
      summary: 'Leave it out for good',
      params: Path,
      body: SkipBody,
      response: { 200: response('It is skipped', DecidedDeadLetter) },
    },
    config: { action: 'operator', refusals: ['NOT_FOUND'] },
    async handler(request, reply) {
      const event = await find(dependencies, request.params.id);
      if (isRejection(event)) return sendRejection(reply, event);
      const { reason, operator = OPERATOR_ID } = request.body;
      const { deadLetters, log } = dependencies.operator;
      await deadLetters.skip(event, operator, reason);
      const actor = actorOf(operator);
      log.info({ actor, ...present(event), skipped_for: reason }, 'dead letter skipped');
      return reply.send({ ...present(event), outcome: 'skipped', failure: null });
    },
  });
}

async function find({ operator }: Parts, id: string): Promise<DeadLetter | Rejection> {
  const found = (await operator.deadLetters.list()).find((event) => idOf(event) === id);
  const message = 'There is no dead letter of this id without a decision.';
  return found ?? reject('NOT_FOUND', { dead_letter_id: id }, { message });
}

/** As events name it: `operator:ada`. */
const actorOf = (operator: string) => `operator:${operator}`;

function idOf({ sequence, by }: DeadLetter): string {
  return `${sequence}.${by}`;
}

function present(event: DeadLetter) {
  const { by, kind, stream, sequence, subject, reason, at, attempts } = event;
  return {
    id: idOf(event),
    kind,
    stream,
    sequence,
    failed_by: by,
    subject: subject || null,
    reason: reason.slice(0, REASON_MAX),
    at,
    attempts,
  };
}
