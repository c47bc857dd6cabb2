import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CloudEvent } from '#events/cloud-event.ts';
import { reject } from '#src/kernel/errors.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { goneSignal } from '../http/client-gone.ts';
import { sendRejection } from '../http/error-response.ts';
import { PAGE_DEFAULT, afterParameter, limitParameter } from '../schemas/history.ts';
import { Words } from '../schemas/fields.ts';
import { invalid } from '../http/validation.ts';
import type { EventQuery } from './event-query.ts';

/** The parameters of a page of events, beside those of a stream. */
export const pageParameters = {
  format: Type.Optional(
    Words(['json', 'sse'], {
      description:
        'a page of stored events, or a stream; default: as `Accept` says, a stream if it does not',
      refusal: (format: unknown) =>
        invalid({ field: 'format', format }, 'format must be json or sse.'),
    }),
  ),
  after: afterParameter('of a page: `next` of the page before; it takes precedence over `from`'),
  limit: limitParameter,
};

const EXAMPLE: CloudEvent = {
  specversion: '1.0',
  id: 'evt_c0Zq4nRk1mT8yXwU5sLd2B',
  type: 'session.accessed',
  source: '/browser-session-service',
  subject: 'ses_J5mYt3QKX2m0bq1uHcR8Vw',
  time: '2026-11-20T09:30:00.041Z',
  datacontenttype: 'application/json',
  dataschema: 'urn:bss:event:session.accessed:1',
  sequence: 48_211,
  actor: 'service:gateway%2Fcdp',
  correlationid: 'cor_2hN0v5cTq9YxK3pLsD7mWb',
  causationid: null,
  data: { via: 'cdp', at: '2026-11-20T09:30:00.041Z' },
  state: null,
};

export const EventPage = Type.Object(
  {
    events: Type.Array(
      Type.Unsafe<CloudEvent>({ ...CloudEvent, title: 'CloudEvent', examples: [EXAMPLE] }),
      { description: 'oldest first' },
    ),
    next: Type.Integer({
      minimum: 0,
      examples: [48_211],
      description:
        '`after` of the next page, now or later: all that matches up to there is on this page or ' +
        'before it',
    }),
    more: Type.Boolean({
      examples: [false],
      description:
        'true: more may be stored already, also after a page with fewer events than `limit`, or ' +
        'none; false: the page reached the end of what was stored',
    }),
  },
  { title: 'EventPage' },
);

/** Answers with the page, or with the rejection. */
export async function answerWithPage(
  { feed }: Pick<ApiDependencies, 'feed'>,
  request: FastifyRequest,
  reply: FastifyReply,
  { asked, begin }: EventQuery,
  { after, limit = PAGE_DEFAULT }: { after?: number; limit?: number },
): Promise<FastifyReply> {
  const { organizationId } = request.caller;
  const position = after ?? begin ?? 0;
  const page = await feed.page({
    subscription: { ...asked, organizationId, sessionId: null },
    begin: position,
    limit,
    signal: goneSignal(reply),
  });
  if (page === 'ahead')
    return sendRejection(
      reply,
      reject(
        'INVALID_REQUEST',
        { field: 'after', position },
        { message: 'The event log has not reached this position.' },
      ),
    );
  return reply
    .type('application/json; charset=utf-8')
    .send(`{"events":[${page.events.join(',')}],"next":${page.next},"more":${page.isMore}}`);
}
