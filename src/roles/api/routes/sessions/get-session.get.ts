import { isId } from '#events/subjects.ts';
import { sessionKey } from '#projections/session-view.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { createRenderer, presentSession } from '../../schemas/present-session.ts';
import { SessionPath } from '../../schemas/requests.ts';
import { Session } from '../../schemas/sessions.ts';
import { currentSessionView } from '../../sessions/current-session.ts';
import { queuePlace } from '../../sessions/queue-place.ts';
import { AsOfQuery, readAsOf } from '../../time-travel/as-of.ts';
import type { HistoryReader } from '../../time-travel/history-reader.ts';

/**
 * GET /api/sessions/{id}: from the read model if it is current, else from the event store; with
 * `as_of` always from the event store.
 */
export function getSession(
  server: ApiServer,
  dependencies: ApiDependencies,
  past: HistoryReader,
): void {
  const render = createRenderer(dependencies.addresses);

  server.route({
    method: 'GET',
    url: '/api/sessions/:id',
    schema: {
      operationId: 'getSession',
      tags: ['Sessions'],
      summary: 'Read a session',
      params: SessionPath,
      querystring: AsOfQuery,
      response: { 200: response('The session', Session) },
    },
    config: {
      action: 'read',
      refusals: ['SESSION_NOT_FOUND'],
      admission: 'handler',
      cost: costs.getSession,
    },
    async handler(request, reply) {
      const { id } = request.params;
      const { caller } = request;
      const { organizationId } = caller;
      const at = readAsOf(request.query.as_of, dependencies.context.now());
      const [rejection, current] = await Promise.all([
        request.admitted,
        at === null ? currentSessionView(dependencies, organizationId, id) : null,
      ]);
      if (rejection !== null) return sendRejection(reply, rejection);
      if (at !== null && typeof at !== 'number') return sendRejection(reply, at);
      if (at !== null) {
        const then = isId(id) ? await past.session(organizationId, id, at) : null;
        if (then === null) return sendRejection(reply, notFound(id));
        const session = presentSession(then.state, caller, dependencies.addresses);
        return reply.send({ ...session, ...then.place });
      }
      if (current === null) return sendRejection(reply, notFound(id));
      const { body, waiting } = render(current, sessionKey(organizationId, id), caller);
      const place = waiting === null ? null : await queuePlace(dependencies, waiting);
      // The place in the queue changes without the session: it is appended to the rendered text.
      const whole =
        place === null ? body : `${body.slice(0, -1)},${JSON.stringify(place).slice(1)}`;
      void reply.type('application/json; charset=utf-8');
      return whole;
    },
  });
}

function notFound(id: string): Rejection {
  return reject('SESSION_NOT_FOUND', { session_id: id });
}
