import { Type } from 'typebox';
import { addressOf, PAGE_HEADERS, pageAssets } from './docs-assets.ts';
import { docsPage } from './docs-page.ts';
import { openApiDocument } from './docs/openapi.ts';
import type { Route } from './http/route.ts';

/** GET /docs: the same document as a page; its examples call the address it was asked at. */
export function docs(routes: () => readonly Route[]): Route {
  return {
    method: 'GET',
    path: '/docs',
    operationId: 'getDocs',
    summary: 'This page',
    action: 'public',
    answer: {
      status: 200,
      contentType: 'text/html',
      schema: Type.String(),
      description: 'All operations, for people',
    },
    refusals: [],
    handle(request, reply) {
      const page = docsPage(openApiDocument(routes()), addressOf(request), pageAssets);
      return reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(page);
    },
  };
}
