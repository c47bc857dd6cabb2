import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { RouteOptions } from 'fastify';
import packageJson from '../../../../package.json' with { type: 'json' };
import { Role } from '#events/organization.ts';
import { mayDo } from '#src/kernel/domain/organization/roles.ts';
import type { RouteConfig } from '../http/route.ts';
import { errorResponses, rateLimitHeaders, sharedHeaders } from './error-responses.ts';
import { exampleOf } from './examples.ts';
import type { DocumentSchema, OpenApiDocument } from './openapi-document.ts';

const ABOUT = [
  'Real, isolated browsers over HTTP: create a session, drive it by CDP, watch it by VNC.',
  'All data belongs to an organization; the credential (`Authorization: Bearer …`) selects it.',
  'Every answer has the organization’s rate limit in `X-RateLimit-*`, in units: a request takes ' +
    'one, or as many as its description says. Without a credential the limit is that of the ' +
    'address. Every error has the body `{error, message, code, context}`. An unknown path is 404 ' +
    '`NOT_FOUND`.',
].join('\n\n');

/**
 * The options with which @fastify/swagger generates the OpenAPI document: from the routes' schemas,
 * and from their `config` the roles and the errors of each route.
 */
export const openApiOptions: FastifyDynamicSwaggerOptions = {
  stripBasePath: false,
  convertConstToEnum: false,
  openapi: {
    openapi: '3.1.1',
    info: {
      title: 'Browser Session Service',
      version: packageJson.version,
      description: ABOUT,
      // Client generators expect the SPDX identifier, or an address.
      license: { name: packageJson.license, identifier: packageJson.license },
    },
    // Relative to the document at /api/openapi.json: a proxy may have the service below a path.
    servers: [{ url: '..' }],
    tags: [
      { name: 'Sessions', description: 'Create, use and stop browser sessions.' },
      { name: 'Pages', description: 'A picture, a PDF or the content of a page in one call.' },
      { name: 'Recordings', description: 'What the screens of recorded sessions showed.' },
      { name: 'Files', description: 'What sessions download and are given.' },
      {
        name: 'Hand-offs',
        description: 'Automation asks a person for help, waits, and goes on.',
      },
      { name: 'Shares', description: 'Addresses of a session’s screen for others.' },
      { name: 'Profiles', description: 'Browsers’ profiles, kept between sessions.' },
      { name: 'Events', description: 'Streams of events in real time.' },
      { name: 'Webhooks', description: 'Events sent to the organization’s own URLs, signed.' },
      { name: 'Extensions', description: 'Browser extensions that sessions are created with.' },
      {
        name: 'Organization',
        description: 'Limits, credits, usage and API keys of the organization.',
      },
      {
        name: 'Operator',
        description:
          'All organizations and servers, for operators: `OPERATOR_TOKEN` is the credential.',
      },
      { name: 'Service', description: 'Health, metrics and documentation of the service.' },
    ],
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or a JWT.' },
        operator: {
          type: 'http',
          scheme: 'bearer',
          description: 'OPERATOR_TOKEN. Without that variable every operator route is 404.',
        },
      },
    },
  },
  transform: ({ schema, url, route }) => ({ schema: withAccess(schema, route), url }),
  transformObject: (made) =>
    'openapiObject' in made ? complete(made.openapiObject) : made.swaggerObject,
};

type Schema = NonNullable<RouteOptions['schema']>;

/** The route's schema with its permitted roles and all of its errors. */
function withAccess(schema: Schema, { config }: RouteOptions): Schema {
  const { action, refusals, response, isUnlimited = false, cost } = config as RouteConfig;
  const roles = Role.anyOf.map((role) => role.const);
  return {
    ...schema,
    ...(cost && { description: [schema.description ?? [], cost.meaning].flat().join(' ') }),
    security: action === 'public' ? [] : [{ [action === 'operator' ? 'operator' : 'bearer']: [] }],
    ...(action !== 'public' &&
      action !== 'operator' && { 'x-roles': roles.filter((role) => mayDo(role, action)) }),
    response: {
      ...(response as object),
      ...errorResponses({ action, refusals, isUnlimited, hasBody: schema.body !== undefined }),
    },
  };
}

/** Adds what @fastify/swagger leaves out: components, shared headers and examples. */
function complete(made: object): OpenApiDocument {
  // As clients receive it: without values that JSON cannot hold.
  const document = JSON.parse(JSON.stringify(made)) as OpenApiDocument;
  const schemas: Record<string, DocumentSchema> = {};
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    operation.parameters ??= [];
    // Path parameters first, in the order in which they are read.
    operation.parameters.sort((a, b) => Number(b.in === 'path') - Number(a.in === 'path'));
    for (const answer of Object.values(operation.responses))
      answer.headers = headersOf(answer.headers ?? {});
    const { requestBody } = operation;
    const bodies = [requestBody, ...Object.values(operation.responses)];
    for (const [type, media] of bodies.flatMap((body) => Object.entries(body?.content ?? {})))
      if (type === 'application/json' && media.examples === undefined)
        media.example ??= exampleOf(media.schema);
    const body = requestBody?.content['application/json']?.schema;
    if (requestBody !== undefined) requestBody.required = (body?.required ?? []).length > 0;
  }
  document.paths = toComponents(inOrder(document), schemas) as OpenApiDocument['paths'];
  document.components = { ...document.components, schemas, headers: sharedHeaders };
  return document;
}

/** The paths in the order of their tags, wherever their routes were registered. */
function inOrder({ tags, paths }: OpenApiDocument): OpenApiDocument['paths'] {
  const names = tags.map(({ name }) => name);
  const placeOf = (path: OpenApiDocument['paths'][string]) =>
    names.indexOf(Object.values(path)[0]?.tags[0] ?? '');
  const sorted = Object.entries(paths).toSorted(([, a], [, b]) => placeOf(a) - placeOf(b));
  return Object.fromEntries(sorted);
}

/**
 * Headers of every response and headers of several responses are references; other headers are
 * inline.
 */
function headersOf(own: OpenApiDocument['components']['headers']) {
  const names = [...rateLimitHeaders, ...Object.keys(own)];
  return Object.fromEntries(
    names.map((name) => [
      name,
      name in sharedHeaders ? { $ref: `#/components/headers/${name}` } : (own[name] ?? {}),
    ]),
  );
}

/** Every schema with a title becomes a component of that name, and a reference in its place. */
function toComponents(value: unknown, schemas: Record<string, DocumentSchema>): unknown {
  if (Array.isArray(value)) return value.map((one) => toComponents(one, schemas));
  if (typeof value !== 'object' || value === null) return value;
  const inner = Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      key.startsWith('example') ? one : toComponents(one, schemas),
    ]),
  ) as DocumentSchema;
  const { title } = inner;
  if (typeof title !== 'string') return inner;
  schemas[title] ??= inner;
  return { $ref: `#/components/schemas/${title}` };
}
