import { EventHeaders, eventQuery, readEventQuery } from '../../event-stream/event-query.ts';
import { answerWithEvents, EVENT_STREAM_RESPONSE } from '../../event-stream/event-stream.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
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
        'Server-Sent Events: `event` is the type, `id` the position in the event store, `data` a ' +
        'CloudEvent in JSON on one line. Without a position the stream sends events from now ' +
        'on. With a position it first sends the stored events from there, then new ones, without ' +
        'gaps or duplicates. A comment is sent every 15 s. A stream that the service ends early ' +
        'sends an event `end` with the reason (`slow_reader`, `credential_revoked`, ' +
        '`newer_version`, ' +
        '`shutting_down`, `interrupted`): reconnect with the last `id`. The event types are ' +
        'documented at `/docs/events`.',
      querystring: eventQuery(['session', 'ledger', 'organization']),
      headers: EventHeaders,
      response: { 200: EVENT_STREAM_RESPONSE },
    },
    config: { action: 'read', refusals: ['STREAM_LIMIT_EXCEEDED'], cost: costs.streamEvents },
    handler(request, reply) {
      const { asked, begin } = readEventQuery(request.query, request.headers);
      const wanted = { asked, begin: begin ?? 'now', sessionId: null } as const;
      return answerWithEvents(dependencies, request, reply, wanted);
    },
  });
}
