import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRejected } from '../../../errors.ts';
import type { Caller } from '../../auth/authenticate.ts';
import { eventHeaders, eventParameters, readEventQuery } from '../../event-stream/event-query.ts';
import { EVENT_STREAM_ANSWER, EVENT_STREAM_REFUSALS } from '../../event-stream-answer.ts';
import { answerWithEvents } from '../../event-stream/event-stream.ts';
import type { ApiParts } from '../../dependencies.ts';
import { refuse } from '../../http/error-response.ts';
import type { Route } from '../../http/route.ts';

const KINDS = ['session', 'ledger', 'organization'] as const;

/** GET /api/events: all that happens in the organization. */
export function streamEvents(parts: ApiParts): Route {
  async function handle(request: FastifyRequest, reply: FastifyReply, caller: Caller) {
    const query = readEventQuery(request, KINDS);
    if (isRejected(query)) return refuse(reply, query);
    const wanted = { asked: query.asked, begin: query.begin ?? 'now', sessionId: null } as const;
    return answerWithEvents(parts, { request, reply, caller }, wanted);
  }
  return {
    method: 'GET',
    path: '/api/events',
    operationId: 'streamEvents',
    summary: "The organization's events, as they happen",
    details:
      'Server-Sent Events: `event` is the type, `id` the position in the log, `data` a ' +
      'CloudEvent ' +
      'in JSON on one line. Without a position it begins with what comes from now on; with one ' +
      'what was missed comes first, then it is live, and nothing is lost or doubled between. ' +
      'A comment comes every 15 s. A stream that ends before its time says why in an event `end` ' +
      '(`slow_reader`, `credential_revoked`, `shutting_down`, `interrupted`): reconnect with the ' +
      'last `id`. The events themselves are at `/docs/events`.',
    action: 'read',
    query: eventParameters(KINDS),
    headers: eventHeaders,
    answer: EVENT_STREAM_ANSWER,
    refusals: EVENT_STREAM_REFUSALS,
    handle,
  };
}
