import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { statuses, type SessionStatus } from '#events/session.ts';
import { organizationSessions, sessionLists } from '#projections/organization-sessions.ts';
import { idOf } from '#projections/projection.ts';
import type { Page, PageQuery } from '#projections/store/views.ts';
import { isRejected, reject, type Rejected } from '../../../errors.ts';
import { admission } from '../../http/admission.ts';
import { asOfParameter, readAsOf } from '../../time-travel/as-of.ts';
import type { Caller } from '../../auth/authenticate.ts';
import { LABELS_MAX, labelSchema, readLabel } from '../../schemas/label.ts';
import type { ApiParts } from '../../dependencies.ts';
import type { Past } from '../../time-travel/past.ts';
import { refuse } from '../../http/error-response.ts';
import { catchingUp, CURRENT_WITHIN_MS } from '../../sessions/read-your-writes.ts';
import type { Route } from '../../http/route.ts';
import { SessionList } from '../../schemas/sessions.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;

/**
 * GET /api/sessions: a page of the organization's sessions, newest first; rows are sent as they are
 * kept.
 */
export function listSessions(parts: ApiParts, past: Past): Route {
  return {
    method: 'GET',
    path: '/api/sessions',
    operationId: 'listSessions',
    summary: "List the organization's sessions, newest first",
    action: 'read',
    admitsItself: true,
    query: {
      limit: {
        schema: Type.Integer({ minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT }),
        description: 'page size, 1 to 100',
      },
      offset: {
        schema: Type.Integer({ minimum: 0, default: 0 }),
        description: 'rows to pass over',
      },
      status: {
        schema: Type.Union(statuses.map((one) => Type.Literal(one))),
        description: 'only these',
      },
      label: {
        schema: labelSchema,
        description: 'key=value; repeat it: all must match',
      },
      ...asOfParameter,
    },
    answer: { status: 200, schema: SessionList, description: 'A page of sessions' },
    refusals: [],
    handle: (request, reply, caller) => list({ ...parts, past }, request, reply, caller),
  };
}

async function list(
  parts: ApiParts & { past: Past },
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller,
): Promise<FastifyReply> {
  const sent = request.query as Record<string, unknown>;
  const { organizationId } = caller;
  const query = readQuery(sent, organizationId);
  const at = readAsOf(sent['as_of'], parts.desk.now());
  const current = !isRejected(query) && at === null ? currentPage(parts, query) : null;
  const [refusal] = await Promise.all([admission(request, parts.desk.now()), current]);
  if (refusal !== null) return refuse(reply, refusal);
  if (isRejected(query)) return refuse(reply, query);
  if (at !== null && typeof at !== 'number') return refuse(reply, at);
  // A past one is folded: only for those who are let in.
  const page = at === null ? current : parts.past.sessions(organizationId, query, at);
  const { items, total } = (await page) ?? { items: '', total: 0 };
  const { limit, offset } = query;
  return reply
    .type('application/json; charset=utf-8')
    .send(
      `{"sessions":[${items}],"total":${total},"pagination":{"limit":${limit},"offset":${offset}}}`,
    );
}

/**
 * A page that holds every event this process has seen; lists never step back, not even in a
 * rebuild.
 */
async function currentPage({ views, tail }: ApiParts, query: PageQuery): Promise<Page> {
  const id = idOf(organizationSessions);
  const seen = tail.position();
  const page = await views.page(id, query);
  if (page.checkpoint >= seen) return page;
  const later = (await views.reached(id, seen, CURRENT_WITHIN_MS))
    ? await views.page(id, query)
    : page;
  if (later.checkpoint >= seen) return later;
  throw catchingUp();
}

function readQuery(sent: Record<string, unknown>, organizationId: string): PageQuery | Rejected {
  const { limit: limitSent, offset: offsetSent, status, label } = sent;
  const limit = readInteger(limitSent, LIMIT_DEFAULT, 1, LIMIT_MAX);
  if (limit === null)
    return invalid(`limit must be a whole number from 1 to ${LIMIT_MAX}.`, { limit: limitSent });
  const offset = readInteger(offsetSent, 0, 0, Number.MAX_SAFE_INTEGER);
  if (offset === null)
    return invalid('offset must be a whole number from 0 on.', { offset: offsetSent });
  const known: SessionStatus | null = statuses.find((one) => one === status) ?? null;
  if (status !== undefined && known === null)
    return invalid('There is no such status.', { status, known: statuses });
  const pairs: (readonly [name: string, value: string])[] = [];
  const labels = label === undefined ? [] : ([label].flat() as string[]);
  if (labels.length > LABELS_MAX)
    return invalid(`At most ${LABELS_MAX} labels can be asked for.`, {});
  for (const one of labels) {
    const pair = readLabel(one);
    if (pair === null) return invalid('label must be key=value.', { label: one });
    pairs.push(pair);
  }
  return { lists: sessionLists(organizationId, known, pairs), limit, offset };
}

function readInteger(sent: unknown, fallback: number, min: number, max: number): number | null {
  if (sent === undefined) return fallback;
  if (typeof sent !== 'string' || !/^\d{1,16}$/.test(sent)) return null;
  const value = Number(sent);
  return value >= min && value <= max ? value : null;
}

function invalid(message: string, context: Record<string, unknown>): Rejected {
  return reject('INVALID_REQUEST', context, { message });
}
