import { EventHeaders, eventQuery, readEventQuery } from '../../event-stream/event-query.ts';
import { answerWithEvents, EVENT_STREAM_RESPONSE } from '../../event-stream/event-stream.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import type { ApiServer } from '../../http/route.ts';

/** GET /api/events: all events of the organization. */
export function streamEvents(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'GET',
    url: '/api/events',
    schema: {
      operationId: 'streamEvents',
      tags: ['Events'],
      summary: "The organization's events, as they happen",
      description:
        'Server-Sent Events: `event` is the type, `id` the position in the log, `data` a ' +
        'CloudEvent in JSON on one line. Without a position it begins with what comes from now ' +
        'on; with one what was missed comes first, then it is live, and nothing is lost or ' +
        'doubled between. A comment comes every 15 s. A stream that ends before its time says ' +
        'why in an event `end` (`slow_reader`, `credential_revoked`, `shutting_down`, ' +
        '`interrupted`): reconnect with the last `id`. The events themselves are at ' +
        '`/docs/events`.',
      querystring: eventQuery(['session', 'ledger', 'organization']),
      headers: EventHeaders,
      response: { 200: EVENT_STREAM_RESPONSE },
    },
    config: { action: 'read', refusals: ['STREAM_LIMIT_EXCEEDED'] },
    handler(request, reply) {
      const { asked, begin } = readEventQuery(request.query, request.headers);
      const wanted = { asked, begin: begin ?? 'now', sessionId: null } as const;
      return answerWithEvents(dependencies, request, reply, wanted);
    },
  });
}
