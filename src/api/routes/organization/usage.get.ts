import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { isRejected, reject, type Rejected } from '#src/errors.ts';
import { MOMENT_OR_DATE_PATTERN, readMomentOrDate } from '#src/moment.ts';
import { spanOf, usageLines, usageTotals, type UsageLine } from '#src/billing/usage.ts';
import type { Caller } from '../../auth/authenticate.ts';
import type { ApiParts } from '../../dependencies.ts';
import { refuse } from '../../http/error-response.ts';
import type { Route } from '../../http/route.ts';
import { Usage } from '../../schemas/usage.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const DAY_MS = 86_400_000;
const RANGE_MAX_DAYS = 366;
const AFTER_PATTERN = '^[0-9]{1,15}$';

const timeParameter = Type.String({
  pattern: MOMENT_OR_DATE_PATTERN,
  examples: ['2026-11-01', '2026-11-20T09:30:00.000Z'],
});

/**
 * GET /api/usage: what the organization used, from the log itself: no read model stands between, so
 * a range that is over is answered the same for ever.
 */
export function organizationUsage(parts: ApiParts): Route {
  return {
    method: 'GET',
    path: '/api/usage',
    operationId: 'getUsage',
    summary: 'What the organization used, session by session',
    details:
      'Sessions whose use was settled between `from` and `to` by the clock of the event log, ' +
      'with ' +
      'every event that made each line. Ranges that meet share nothing and miss nothing.',
    action: 'read',
    query: {
      from: {
        schema: timeParameter,
        description: 'RFC 3339, or a date in UTC; default: the month begun in which `to` is',
      },
      to: { schema: timeParameter, description: 'up to there, not included; default: now' },
      limit: {
        schema: Type.Integer({ minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT }),
        description: 'lines of a page, 1 to 100',
      },
      after: {
        schema: Type.String({ pattern: AFTER_PATTERN }),
        description: '`pagination.next` of the page before',
      },
    },
    answer: { status: 200, schema: Usage, description: 'The range with a page of its lines' },
    refusals: [],
    handle: (request, reply, caller) => answer(parts, request, reply, caller),
  };
}

async function answer(
  { desk }: ApiParts,
  request: FastifyRequest,
  reply: FastifyReply,
  { organizationId }: Caller,
): Promise<FastifyReply> {
  const now = desk.now();
  const asked = readQuery(request.query as Record<string, unknown>, now);
  if (isRejected(asked)) return refuse(reply, asked);
  const { from, to, limit, after } = asked;
  const span = await spanOf(desk.log, from, to >= now ? null : to);
  const page = { ...span, after: Math.max(span.after, after) };
  const [totals, { lines, next }] = await Promise.all([
    usageTotals(desk.log, organizationId, span),
    usageLines(desk.log, organizationId, page, limit),
  ]);
  return reply.send({
    organization_id: organizationId,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    totals: { sessions: totals.sessions, minutes: totals.credits, credits: totals.credits },
    open: { sessions: totals.open, credits_reserved: totals.creditsReserved },
    lines: lines.map(presentLine),
    pagination: { limit, next: next === null ? null : String(next) },
  });
}

function presentLine(line: UsageLine) {
  return {
    session_id: line.sessionId,
    session_name: line.name,
    user_id: line.userId,
    started_at: line.startedAt,
    billed_until: line.billedUntil,
    ended_at: line.endedAt,
    ended_reason: line.endedReason,
    minutes: line.creditsUsed,
    credits_reserved: line.creditsReserved,
    credits_used: line.creditsUsed,
    credits_refunded: line.creditsRefunded,
    events: line.events,
  };
}

type Asked = { from: number; to: number; limit: number; after: number };

function readQuery(sent: Record<string, unknown>, now: number): Asked | Rejected {
  const to = sent['to'] === undefined ? now : readMomentOrDate(sent['to']);
  if (to === null)
    return invalid('to must be a date, or a time like 2026-11-20T09:30:00.000Z.', {
      to: sent['to'],
    });
  const from = sent['from'] === undefined ? monthOf(to) : readMomentOrDate(sent['from']);
  if (from === null)
    return invalid('from must be a date, or a time like 2026-11-20T09:30:00.000Z.', {
      from: sent['from'],
    });
  if (from > to)
    return invalid('from must not be after to.', { from: sent['from'], to: sent['to'] });
  if (to - from > RANGE_MAX_DAYS * DAY_MS)
    return invalid(`A range is at most ${RANGE_MAX_DAYS} days.`, { max_days: RANGE_MAX_DAYS });
  const limit = readWhole(sent['limit'] ?? `${LIMIT_DEFAULT}`);
  if (limit === null || limit < 1 || limit > LIMIT_MAX)
    return invalid(`limit must be a whole number from 1 to ${LIMIT_MAX}.`, {
      limit: sent['limit'],
    });
  const after = readWhole(sent['after'] ?? '0');
  if (after === null)
    return invalid('after must be what a page gave as next.', { after: sent['after'] });
  return { from, to, limit, after };
}

function readWhole(sent: unknown): number | null {
  return typeof sent === 'string' && /^\d{1,15}$/.test(sent) ? Number(sent) : null;
}

function monthOf(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

function invalid(message: string, context: Record<string, unknown>): Rejected {
  return reject('INVALID_REQUEST', context, { message });
}
