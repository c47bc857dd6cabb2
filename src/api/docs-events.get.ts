import { Type } from 'typebox';
import { asyncApiText } from './routes/service/documents.get.ts';
import { addressOf, PAGE_HEADERS, pageAssets } from './docs-assets.ts';
import { eventsPage, type EventsDocument } from './docs-events-page.ts';
import type { Route } from './http/route.ts';

/** GET /docs/events: the events' document as a page. */
export function docsEvents(): Route {
  const document = JSON.parse(asyncApiText) as EventsDocument;
  return {
    method: 'GET',
    path: '/docs/events',
    operationId: 'getEventDocs',
    summary: 'The events, as a page',
    action: 'public',
    answer: {
      status: 200,
      contentType: 'text/html',
      schema: Type.String(),
      description: 'All events, for people',
    },
    refusals: [],
    handle(request, reply) {
      const page = eventsPage(document, addressOf(request), pageAssets);
      return reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(page);
    },
  };
}
