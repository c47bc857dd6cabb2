import { Type } from 'typebox';
import { EventHeaders, eventQuery, readEventQuery } from '../../event-stream/event-query.ts';
import { answerWithPage, EventPage, pageParameters } from '../../event-stream/event-page.ts';
import { answerWithEvents, EVENT_STREAM_RESPONSE } from '../../event-stream/event-stream.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { costs, wantsPages } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { responses, type ApiServer } from '../../http/route.ts';
import { invalid } from '../../http/validation.ts';

const Query = Type.Object(
  { ...eventQuery(['session', 'ledger', 'organization', 'profile']).properties, ...pageParameters },
  { additionalProperties: false },
);

/** GET /api/events: all events of the organization, as a stream or in pages. */
export function streamEvents(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'GET',
    url: '/api/events',
    schema: {
      operationId: 'streamEvents',
      tags: ['Events'],
      summary: "The organization's events, as they happen or in pages",
      description:
        'Server-Sent Events: `event` is the type, `id` the position in the event store, `data` a ' +
        'CloudEvent in JSON on one line. Without a position the stream sends events from now ' +
        'on. With a position it first sends the stored events from there, then new ones, without ' +
        'gaps or duplicates. A comment is sent every 15 s. A stream that the service ends early ' +
        'sends an event `end` with the reason (`slow_reader`, `credential_revoked`, ' +
        '`newer_version`, ' +
        '`shutting_down`, `interrupted`): reconnect with the last `id`. The event types are ' +
        'documented at `/docs/events`. With `Accept: application/json` or `format=json` it is a ' +
        'page of the stored events, from the first one on or from the position; `next` leads to ' +
        'the next page, and no event is missed or comes twice.',
      querystring: Query,
      headers: EventHeaders,
      response: { 200: responses(EVENT_STREAM_RESPONSE, 'or a page', EventPage) },
    },
    config: { action: 'read', refusals: ['STREAM_LIMIT_EXCEEDED'], cost: costs.streamEvents },
    handler(request, reply) {
      const { after, limit } = request.query;
      const query = readEventQuery(request.query, request.headers);
      const page = { ...(after !== undefined && { after }), ...(limit !== undefined && { limit }) };
      if (wantsPages(request)) return answerWithPage(dependencies, request, reply, query, page);
      const [field] = Object.keys(page);
      if (field !== undefined)
        return sendRejection(reply, invalid({ field }, `${field} is for pages: add format=json.`));
      const wanted = { asked: query.asked, begin: query.begin ?? 'now', sessionId: null } as const;
      return answerWithEvents(dependencies, request, reply, wanted);
    },
  });
}
