import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRejected, reject } from '#src/errors.ts';
import { isFinal } from '#src/domain/session/session.ts';
import type { Caller } from '../../auth/authenticate.ts';
import { eventHeaders, eventParameters, readEventQuery } from '../../event-stream/event-query.ts';
import { EVENT_STREAM_ANSWER, EVENT_STREAM_REFUSALS } from '../../event-stream-answer.ts';
import { answerWithEvents } from '../../event-stream/event-stream.ts';
import { loadSession, type ApiParts } from '../../dependencies.ts';
import { refuse } from '../../http/error-response.ts';
import { parameter, type Route } from '../../http/route.ts';

const KINDS = ['session'] as const;

/** GET /api/sessions/{id}/events: a session's life, from its first event to its last. */
export function streamSessionEvents(parts: ApiParts): Route {
  async function handle(request: FastifyRequest, reply: FastifyReply, caller: Caller) {
    const query = readEventQuery(request, KINDS);
    if (isRejected(query)) return refuse(reply, query);
    const id = parameter(request, 'id');
    const session = await loadSession(parts.desk, caller.organizationId, id);
    if (session === null) return refuse(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
    const begin = query.begin ?? 0;
    const hasAll = typeof begin === 'number' && begin >= session.sequence;
    // An EventSource reconnects after every end; told that nothing is left, it does not.
    if (isFinal(session.state.status) && hasAll) return reply.code(204).send();
    const wanted = { asked: query.asked, begin, sessionId: id };
    return answerWithEvents(parts, { request, reply, caller }, wanted);
  }
  return {
    method: 'GET',
    path: '/api/sessions/:id/events',
    operationId: 'streamSessionEvents',
    summary: "A session's events, from its request to its end",
    details:
      'Server-Sent Events as those of `/api/events`. Without a position it begins with the ' +
      "session's first event. It ends after `session.stopped` or `session.failed`; whoever " +
      'reconnects after that with the last `id` gets 204, which `EventSource` takes as the end.',
    action: 'read',
    query: eventParameters(KINDS),
    headers: eventHeaders,
    answer: EVENT_STREAM_ANSWER,
    noContent: 'The session has ended, and all of it was heard: nothing is left to follow',
    refusals: ['SESSION_NOT_FOUND', ...EVENT_STREAM_REFUSALS],
    handle,
  };
}
