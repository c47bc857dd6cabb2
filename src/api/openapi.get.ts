import { Type } from 'typebox';
import { openApiDocument } from './docs/openapi.ts';
import type { Route } from './http/route.ts';

const OpenApi = Type.Object(
  { openapi: Type.String({ examples: ['3.1.1'] }) },
  { description: 'an OpenAPI 3.1 document', additionalProperties: true },
);

/** GET /api/openapi.json: made of the routes that are served, once, when it is first asked for. */
export function openApi(routes: () => readonly Route[]): Route {
  let document: string | null = null;
  return {
    method: 'GET',
    path: '/api/openapi.json',
    operationId: 'getOpenApi',
    summary: 'This document',
    action: 'public',
    answer: { status: 200, schema: OpenApi, description: 'All operations, for programs' },
    refusals: [],
    handle(_request, reply) {
      document ??= JSON.stringify(openApiDocument(routes()));
      return reply.type('application/json; charset=utf-8').send(document);
    },
  };
}
