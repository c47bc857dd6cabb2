import { Type } from 'typebox';
import { prepareDocument, sendDocument } from '../../docs/prepared-document.ts';
import { loadReferencePages, SCRIPT_PATH } from '../../docs/reference-page.ts';
import { emptyResponse, response, type ApiServer } from '../../http/route.ts';

const ETAG = { ETag: Type.String({ description: 'for `If-None-Match`' }) };
const NOT_MODIFIED = emptyResponse('The client has it: `If-None-Match` names its `ETag`');
const CONDITIONAL = 'Needs no credential, and counts towards the rate limit of the address.';

const OpenApi = Type.Object(
  { openapi: Type.String({ examples: ['3.1.1'] }) },
  { description: 'an OpenAPI 3.1 document', additionalProperties: true },
);
const AsyncApi = Type.Object(
  { asyncapi: Type.String({ examples: ['3.0.0'] }) },
  { description: 'an AsyncAPI 3 document', additionalProperties: true },
);

const config = { action: 'public', refusals: [] } as const;

type Page = { url: string; operationId: string; summary: string; shows: string };
const PAGES: Record<'openapi' | 'asyncapi', Page> = {
  openapi: {
    url: '/docs',
    operationId: 'getDocs',
    summary: 'API reference, as a page',
    shows: 'All operations, for people',
  },
  asyncapi: {
    url: '/docs/events',
    operationId: 'getEventDocs',
    summary: 'Event reference, as a page',
    shows: 'All events, for people',
  },
};

/**
 * The documents of the API and of its events: for programs as JSON, for people as pages. Each is
 * made once in a process, at the first request for it.
 */
export function serveDocuments(server: ApiServer): void {
  serveJson(server);
  const pages = once(loadReferencePages);

  for (const name of ['openapi', 'asyncapi'] as const) {
    const { url, operationId, summary, shows } = PAGES[name];
    server.route({
      method: 'GET',
      url,
      schema: {
        operationId,
        tags: ['Service'],
        summary,
        description: CONDITIONAL,
        response: {
          200: response(shows, Type.String(), { contentType: 'text/html', headers: ETAG }),
          304: NOT_MODIFIED,
        },
      },
      config,
      handler: async (request, reply) => sendDocument(request, reply, (await pages())[name]),
    });
  }
  server.route({
    method: 'GET',
    url: SCRIPT_PATH,
    schema: { hide: true },
    config,
    handler: async (request, reply) => sendDocument(request, reply, (await pages()).script),
  });
}

function serveJson(server: ApiServer): void {
  const type = { 'content-type': 'application/json; charset=utf-8' };
  const openApi = once(() => prepareDocument(JSON.stringify(server.swagger()), type));
  const asyncApi = once(async () => {
    const { readAsyncApi } = await import('../../docs/asyncapi.ts');
    return prepareDocument(JSON.stringify(await readAsyncApi()), type);
  });
  server.route({
    method: 'GET',
    url: '/api/openapi.json',
    schema: {
      operationId: 'getOpenApi',
      tags: ['Service'],
      summary: 'API reference, as an OpenAPI document',
      description: CONDITIONAL,
      response: {
        200: response('All operations, for programs', OpenApi, { headers: ETAG }),
        304: NOT_MODIFIED,
      },
    },
    config,
    handler: async (request, reply) => sendDocument(request, reply, await openApi()),
  });
  server.route({
    method: 'GET',
    url: '/api/asyncapi.json',
    schema: {
      operationId: 'getAsyncApi',
      tags: ['Service'],
      summary: 'Event reference, as an AsyncAPI document',
      description: CONDITIONAL,
      response: {
        200: response('All events, for programs', AsyncApi, { headers: ETAG }),
        304: NOT_MODIFIED,
      },
    },
    config,
    handler: async (request, reply) => sendDocument(request, reply, await asyncApi()),
  });
}

/** Makes the value at the first call, and again only after a failure. */
function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | null = null;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    });
    return made;
  };
}
