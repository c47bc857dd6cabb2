import { Type } from 'typebox';
import { statuses } from '#events/session.ts';
import { sessionLists } from '#projections/organization-sessions.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { invalid, itemOf } from '../../http/validation.ts';
import { limitParameter, offsetParameter } from '../../schemas/paging.ts';
import { Words } from '../../schemas/fields.ts';
import { LABELS_MAX, labelParameter, readLabel } from '../../schemas/label.ts';
import { SessionList } from '../../schemas/sessions.ts';
import { currentPage } from '../../sessions/read-model-freshness.ts';
import { asOfParameter, readAsOf } from '../../time-travel/as-of.ts';
import type { HistoryReader } from '../../time-travel/history-reader.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;

const ListQuery = Type.Object(
  {
    limit: limitParameter(LIMIT_DEFAULT, LIMIT_MAX),
    offset: offsetParameter('sessions'),
    status: Type.Optional(
      Words(statuses, {
        description: 'only sessions with this status',
        refusal: (status: unknown) =>
          invalid({ status, known: statuses }, 'There is no such status.'),
      }),
    ),
    label: labelParameter('key=value; repeat it: all must match', (sent, flaw) =>
      flaw.keyword === 'maxItems'
        ? invalid({}, `At most ${LABELS_MAX} labels can be asked for.`)
        : invalid({ label: itemOf(sent, flaw) }, 'label must be key=value.'),
    ),
    user_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: 'only sessions of this user',
        refusal: (userId: unknown) =>
          invalid({ user_id: userId }, 'user_id must have 1 to 256 characters.'),
      }),
    ),
    ...asOfParameter,
  },
  { additionalProperties: false },
);

/**
 * GET /api/sessions: a page of the organization's sessions, newest first; rows are sent as they are
 * stored.
 */
export function listSessions(
  server: ApiServer,
  dependencies: ApiDependencies,
  past: HistoryReader,
): void {
  server.route({
    method: 'GET',
    url: '/api/sessions',
    schema: {
      operationId: 'listSessions',
      tags: ['Sessions'],
      summary: "List the organization's sessions, newest first",
      querystring: ListQuery,
      response: { 200: response('A page of sessions', SessionList) },
    },
    config: { action: 'read', refusals: [], admission: 'handler', cost: costs.listSessions },
    async handler(request, reply) {
      const {
        limit = LIMIT_DEFAULT,
        offset = 0,
        status,
        label = [],
        user_id,
        as_of,
      } = request.query;
      const { organizationId } = request.caller;
      const lists = sessionLists(organizationId, status ?? null, label.map(readLabel), user_id);
      const query = { lists, limit, offset };
      const at = readAsOf(as_of, dependencies.context.now());
      const read = () => currentPage(dependencies, query);
      const isCheap = at === null && lists.length === 1;
      const [rejection, early] = await Promise.all([request.admitted, isCheap ? read() : null]);
      if (rejection !== null) return sendRejection(reply, rejection);
      if (at !== null && typeof at !== 'number') return sendRejection(reply, at);
      // What costs more than a usual read is read for admitted requests alone.
      const current = at === null && !isCheap ? await read() : early;
      const page = current ?? (await past.sessions(organizationId, query, at ?? 0));
      const from = current === null ? null : dependencies.completeFrom();
      const completeFrom = from === null ? '' : `,"complete_from":"${from}"`;
      void reply.type('application/json; charset=utf-8');
      return (
        `{"sessions":[${page.items}],"total":${page.total},` +
        `"pagination":{"limit":${limit},"offset":${offset}}${completeFrom}}`
      );
    },
  });
}
