import { Type, type Static } from 'typebox';
import { isRejection, type Rejection } from '#src/kernel/errors.ts';
import { readMomentOrDate } from '#src/kernel/moment.ts';
import { spanOf, usageLines, usageTotals, type UsageLine } from '#src/kernel/billing/usage.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { invalid } from '../../http/validation.ts';
import { timeParameter } from '../../schemas/time-parameter.ts';
import { presentUsageEgress, Usage } from '../../schemas/usage.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const DAY_MS = 86_400_000;
const RANGE_MAX_DAYS = 366;

const UsageQuery = Type.Object(
  {
    from: timeParameter(
      'from',
      'RFC 3339, or a date in UTC; default: the month begun in which `to` is',
    ),
    to: timeParameter('to', 'up to there, not included; default: now'),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMIT_MAX,
        default: LIMIT_DEFAULT,
        description: 'lines per page, 1 to 100',
        refusal: (limit: unknown) =>
          invalid({ limit }, `limit must be a whole number from 1 to ${LIMIT_MAX}.`),
      }),
    ),
    after: Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,15}$',
        description: '`pagination.next` of the previous page',
        refusal: (after: unknown) => invalid({ after }, 'after must be what a page gave as next.'),
      }),
    ),
  },
  { additionalProperties: false },
);

/**
 * GET /api/usage: the organization's usage, from the event store itself. No read model is involved,
 * so the answer for a range that has passed never changes.
 */
export function organizationUsage(
  server: ApiServer,
  { context }: Pick<ApiDependencies, 'context'>,
): void {
  server.route({
    method: 'GET',
    url: '/api/usage',
    schema: {
      operationId: 'getUsage',
      tags: ['Organization'],
      summary: "The organization's usage, session by session",
      description:
        'Sessions that were billed between `from` and `to` by the clock of the event store, with ' +
        'all events behind each line. Adjacent ranges neither overlap nor leave a gap.',
      querystring: UsageQuery,
      response: { 200: response('The range with a page of its lines', Usage) },
    },
    config: { action: 'read', refusals: [], cost: costs.getUsage },
    async handler(request, reply) {
      const { eventStore } = context;
      const { organizationId } = request.caller;
      const now = context.now();
      const range = readRange(request.query, now);
      if (isRejection(range)) return sendRejection(reply, range);
      const { limit = LIMIT_DEFAULT, after = '0' } = request.query;
      const { from, to } = range;
      const span = await spanOf(eventStore, from, to >= now ? null : to);
      const page = { ...span, after: Math.max(span.after, Number(after)) };
      const [totals, { lines, next }] = await Promise.all([
        usageTotals(eventStore, organizationId, span),
        usageLines(eventStore, organizationId, page, limit),
      ]);
      return reply.send({
        organization_id: organizationId,
        from: new Date(from).toISOString(),
        to: new Date(to).toISOString(),
        totals: {
          sessions: totals.sessions,
          minutes: totals.credits,
          credits: totals.credits,
          egress: presentUsageEgress(totals.egress),
        },
        open: { sessions: totals.open, credits_reserved: totals.creditsReserved },
        lines: lines.map(presentLine),
        pagination: { limit, next: next === null ? null : String(next) },
      });
    },
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
    egress: line.egress === null ? null : presentUsageEgress(line.egress),
    events: line.events,
  };
}

/** The range in ms since the epoch. */
function readRange(
  sent: Pick<Static<typeof UsageQuery>, 'from' | 'to'>,
  now: number,
): { from: number; to: number } | Rejection {
  const to = readMomentOrDate(sent.to) ?? now;
  const from = readMomentOrDate(sent.from) ?? monthOf(to);
  if (from > to) return invalid({ from: sent.from, to: sent.to }, 'from must not be after to.');
  if (to - from > RANGE_MAX_DAYS * DAY_MS)
    return invalid({ max_days: RANGE_MAX_DAYS }, `A range is at most ${RANGE_MAX_DAYS} days.`);
  return { from, to };
}

function monthOf(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}
