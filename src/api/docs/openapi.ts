import type { TSchema } from 'typebox';
import packageJson from '../../../package.json' with { type: 'json' };
import { Role } from '#events/organization.ts';
import { mayDo, type Action } from '#src/domain/organization/roles.ts';
import {
  headerReferences,
  problemAnswers,
  sharedHeaders,
  type DocumentAnswer,
  type DocumentHeader,
} from './error-responses.ts';
import {
  createSchemaWriter,
  exampleOf,
  hasRequired,
  type DocumentSchema,
} from '../openapi-schema.ts';
import type { Documented, Route } from '../http/route.ts';
import { Problem } from '../schemas/sessions.ts';

export type DocumentParameter = {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description: string;
  schema: DocumentSchema;
};

export type DocumentOperation = {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: Record<string, string[]>[];
  /** Roles that may use it; absent: no credential is asked for. */
  'x-roles'?: string[];
  parameters: DocumentParameter[];
  requestBody?: {
    required: boolean;
    content: Record<string, { schema: DocumentSchema; example: unknown }>;
  };
  responses: Record<string, DocumentAnswer>;
};

/** An operation with where it is served. */
export type Placed = { path: string; method: string; operation: DocumentOperation };

/** An OpenAPI 3.1 document, as far as ours go. */
export type OpenApiDocument = {
  openapi: string;
  info: {
    title: string;
    version: string;
    description: string;
    /** `identifier` is SPDX's; generators want it, or an address. */
    license: { name: string; identifier: string };
  };
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, DocumentOperation>>;
  components: {
    schemas: Record<string, DocumentSchema>;
    headers: Record<string, DocumentHeader>;
    securitySchemes: Record<string, Record<string, string>>;
  };
};

const tags = {
  Sessions: 'Browsers: from their request to their end.',
  Organization: 'What it may and has, and who acts for it.',
  Events: 'What happens, as it happens.',
  Service: 'How the service is, and what it is.',
};

const ABOUT = [
  'Real, isolated browsers over HTTP: create a session, drive it by CDP, watch it by VNC.',
  'Everything belongs to an organization; a credential (`Authorization: Bearer …`) says whose.',
  'Every answer carries the organization’s rate limit in `X-RateLimit-*`. Every error has the ' +
    'body `{error, message, code, context}`. An unknown path is 404 `NOT_FOUND`.',
].join('\n\n');

const pathParameters: Record<string, string> = {
  id: 'the session’s id',
  key_id: 'the key’s id, not the key',
};

/** The document of these routes. Made of nothing else, so it cannot say what they do not do. */
export function openApiDocument(routes: readonly Route[]): OpenApiDocument {
  const { write, components } = createSchemaWriter();
  const paths: OpenApiDocument['paths'] = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    (paths[path] ??= {})[route.method.toLowerCase()] = operationOf(route, write);
  }
  const used = new Set(routes.map(({ path }) => tagOf(path)));
  return {
    openapi: '3.1.1',
    info: {
      title: 'Browser Session Service',
      version: packageJson.version,
      description: ABOUT,
      license: { name: packageJson.license, identifier: packageJson.license },
    },
    servers: [{ url: '/' }],
    tags: [...used].map((name) => ({ name, description: tags[name] })),
    paths,
    components: {
      schemas: components,
      headers: Object.fromEntries(
        Object.entries(sharedHeaders).map(([name, header]) => [name, headerOf(header, write)]),
      ),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or a JWT.' },
      },
    },
  };
}

type Write = (schema: TSchema) => DocumentSchema;

function operationOf(route: Route, write: Write): DocumentOperation {
  const { operationId, summary, details, action, body } = route;
  return {
    operationId,
    tags: [tagOf(route.path)],
    summary,
    ...(details === undefined ? {} : { description: details }),
    security: action === 'public' ? [] : [{ bearer: [] }],
    ...(action === 'public' ? {} : { 'x-roles': rolesFor(action) }),
    parameters: parametersOf(route, write),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: hasRequired(body),
            content: { 'application/json': { schema: write(body), example: exampleOf(body) } },
          },
        }),
    responses: {
      [`${route.answer.status}`]: successOf(route, write),
      ...(route.noContent === undefined
        ? {}
        : { 204: { description: route.noContent, headers: headerReferences(), content: {} } }),
      ...problemAnswers(route, write(Problem)),
    },
  };
}

function rolesFor(action: Action): string[] {
  return Role.anyOf.map((role) => role.const).filter((role) => mayDo(role, action));
}

function tagOf(path: string): keyof typeof tags {
  if (path.startsWith('/api/') && path.endsWith('/events')) return 'Events';
  if (path.startsWith('/api/sessions')) return 'Sessions';
  return /^\/api\/(organization|keys|usage)\b/.test(path) ? 'Organization' : 'Service';
}

function parametersOf({ path, query, headers }: Route, write: Write): DocumentParameter[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path' as const,
    required: true,
    description: pathParameters[name] ?? name,
    schema: { type: 'string' },
  }));
  const optional = (place: 'query' | 'header', documented: Record<string, Documented> = {}) =>
    Object.entries(documented).map(([name, { schema, description }]) => ({
      name,
      in: place,
      required: false,
      description,
      schema: write(schema),
    }));
  return [...inPath, ...optional('query', query), ...optional('header', headers)];
}

function successOf({ answer }: Route, write: Write): DocumentAnswer {
  const { contentType = 'application/json', schema, description, headers = {} } = answer;
  const isJson = contentType === 'application/json';
  return {
    description,
    headers: {
      ...headerReferences(),
      ...Object.fromEntries(
        Object.entries(headers).map(([name, header]) => [name, headerOf(header, write)]),
      ),
    },
    content: {
      [contentType]: { schema: write(schema), ...(isJson ? { example: exampleOf(schema) } : {}) },
    },
  };
}

function headerOf({ schema, description }: Documented, write: Write): DocumentHeader {
  return { description, schema: write(schema) };
}
