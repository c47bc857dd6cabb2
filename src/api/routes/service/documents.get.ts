import { readFileSync } from 'node:fs';
import { Type } from 'typebox';
import type { Route } from '../../http/route.ts';

const AsyncApi = Type.Object(
  { asyncapi: Type.String({ examples: ['3.0.0'] }) },
  { description: 'an AsyncAPI 3 document', additionalProperties: true },
);

/** Made of the events' schemas; a test sees to it that it is today's. */
export const asyncApiText = readFileSync(
  new URL('../../../../events/asyncapi.json', import.meta.url),
  'utf8',
);

/** GET /api/asyncapi.json: all events there are, and where they can be heard. */
export function asyncApi(): Route {
  return {
    method: 'GET',
    path: '/api/asyncapi.json',
    operationId: 'getAsyncApi',
    summary: 'The events, as a document',
    action: 'public',
    answer: { status: 200, schema: AsyncApi, description: 'All events, for programs' },
    refusals: [],
    handle: (_request, reply) => reply.type('application/json; charset=utf-8').send(asyncApiText),
  };
}
