import { reject } from '#src/kernel/errors.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { EventHeaders, eventQuery, readEventQuery } from '../../event-stream/event-query.ts';
import { answerWithEvents, EVENT_STREAM_RESPONSE } from '../../event-stream/event-stream.ts';
import { loadSession, type ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { emptyResponse, type ApiServer } from '../../http/route.ts';
import { SessionPath } from '../../schemas/requests.ts';

/** GET /api/sessions/{id}/events: a session's events, from the first to the last. */
export function streamSessionEvents(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/events',
    schema: {
      operationId: 'streamSessionEvents',
      tags: ['Events'],
      summary: "A session's events, from its request to its end",
      description:
        'Server-Sent Events as those of `/api/events`. Without a position it begins with the ' +
        "session's first event. It ends after `session.stopped` or `session.failed`; a client " +
        'that reconnects after that with the last `id` gets 204, which `EventSource` takes as ' +
        'the end.',
      params: SessionPath,
      querystring: eventQuery(['session']),
      headers: EventHeaders,
      response: {
        200: EVENT_STREAM_RESPONSE,
        204: emptyResponse('The session has ended, and the client has received all its events'),
      },
    },
    config: {
      action: 'read',
      refusals: ['SESSION_NOT_FOUND', 'STREAM_LIMIT_EXCEEDED'],
      cost: costs.streamSessionEvents,
    },
    async handler(request, reply) {
      const query = readEventQuery(request.query, request.headers);
      const begin = query.begin ?? 0;
      const { id } = request.params;
      const { organizationId } = request.caller;
      const session = await loadSession(dependencies.context, organizationId, id);
      if (session === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const hasAll = typeof begin === 'number' && begin >= session.sequence;
      // An EventSource reconnects after every end, but not after 204 No Content.
      if (isFinal(session.state.status) && hasAll) return reply.code(204).send();
      return answerWithEvents(dependencies, request, reply, {
        asked: query.asked,
        begin,
        sessionId: id,
      });
    },
  });
}
