import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Type } from 'typebox';
import { loadReferencePages, SCRIPT_PATH, type ReferencePages } from '../../docs/reference-page.ts';
import { response, type ApiServer } from '../../http/route.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

const OpenApi = Type.Object(
  { openapi: Type.String({ examples: ['3.1.1'] }) },
  { description: 'an OpenAPI 3.1 document', additionalProperties: true },
);
const AsyncApi = Type.Object(
  { asyncapi: Type.String({ examples: ['3.0.0'] }) },
  { description: 'an AsyncAPI 3 document', additionalProperties: true },
);

/** Generated from the events' schemas; a test holds it equal to them. */
const asyncApiText = readFileSync(
  new URL('../../../../events/asyncapi.json', import.meta.url),
  'utf8',
);

const config = { action: 'public', refusals: [] } as const;

/** The documents of the API and of its events: for programs as JSON, for people as pages. */
export function serveDocuments(server: ApiServer): void {
  serveJson(server);
  let pages: Promise<ReferencePages> | null = null;
  const load = () => (pages ??= loadReferencePages());

  server.route({
    method: 'GET',
    url: '/docs',
    schema: {
      operationId: 'getDocs',
      tags: ['Service'],
      summary: 'API reference, as a page',
      response: {
        200: response('All operations, for people', Type.String(), { contentType: 'text/html' }),
      },
    },
    config,
    async handler(_request, reply) {
      const { html, headers } = (await load()).page('openapi');
      return reply.headers(headers).send(html);
    },
  });
  server.route({
    method: 'GET',
    url: '/docs/events',
    schema: {
      operationId: 'getEventDocs',
      tags: ['Service'],
      summary: 'Event reference, as a page',
      response: {
        200: response('All events, for people', Type.String(), { contentType: 'text/html' }),
      },
    },
    config,
    async handler(_request, reply) {
      const { html, headers } = (await load()).page('asyncapi');
      return reply.headers(headers).send(html);
    },
  });
  server.route({
    method: 'GET',
    url: SCRIPT_PATH,
    schema: { hide: true },
    config,
    async handler(request, reply) {
      const { script } = await load();
      void reply.type('text/javascript; charset=utf-8').header('vary', 'accept-encoding');
      if (/\bgzip\b/.test(String(request.headers['accept-encoding'])))
        return reply.header('content-encoding', 'gzip').send(script);
      return reply.send(await promisify(gunzip)(script));
    },
  });
}

function serveJson(server: ApiServer): void {
  let openApiText: string | null = null;
  server.route({
    method: 'GET',
    url: '/api/openapi.json',
    schema: {
      operationId: 'getOpenApi',
      tags: ['Service'],
      summary: 'API reference, as an OpenAPI document',
      response: { 200: response('All operations, for programs', OpenApi) },
    },
    config,
    handler(_request, reply) {
      openApiText ??= JSON.stringify(server.swagger());
      return reply.type(JSON_TYPE).send(openApiText);
    },
  });
  server.route({
    method: 'GET',
    url: '/api/asyncapi.json',
    schema: {
      operationId: 'getAsyncApi',
      tags: ['Service'],
      summary: 'Event reference, as an AsyncAPI document',
      response: { 200: response('All events, for programs', AsyncApi) },
    },
    config,
    handler: (_request, reply) => reply.type(JSON_TYPE).send(asyncApiText),
  });
}
