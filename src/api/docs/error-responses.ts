import { Type } from 'typebox';
import { errors, problemBody, reject, type ErrorName } from '#src/errors.ts';
import { mayDo } from '#src/domain/organization/roles.ts';
import type { DocumentSchema } from '../openapi-schema.ts';
import { problemContexts } from './problem-contexts.ts';
import type { Documented, Route } from '../http/route.ts';

/** An answer's header in the document, or a reference to one of its components. */
export type DocumentHeader = {
  $ref?: string;
  description?: string;
  required?: boolean;
  schema?: DocumentSchema;
};

export type DocumentAnswer = {
  description: string;
  headers: Record<string, DocumentHeader>;
  content: Record<
    string,
    { schema: DocumentSchema; example?: unknown; examples?: Record<string, { value: unknown }> }
  >;
};

/** Headers that more than one answer has; the first three are on every answer there is. */
export const sharedHeaders: Record<string, Documented> = {
  'X-RateLimit-Limit': {
    schema: Type.Integer({ minimum: 0, examples: [1000] }),
    description: 'requests allowed in the window, which is a minute',
  },
  'X-RateLimit-Remaining': {
    schema: Type.Integer({ minimum: 0, examples: [997] }),
    description: 'requests left in the window',
  },
  'X-RateLimit-Reset': {
    schema: Type.Integer({ examples: [1_795_167_060] }),
    description: 'end of the window, Unix time in seconds',
  },
  'Retry-After': {
    schema: Type.Integer({ minimum: 1, examples: [5] }),
    description: 'seconds until a retry may help',
  },
  'WWW-Authenticate': { schema: Type.Literal('Bearer'), description: 'how to authenticate' },
  Allow: { schema: Type.String(), description: 'the methods that the path takes' },
};

const everyAnswer = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];

/** Errors that come with further headers. */
const headersOf: Partial<Record<ErrorName, string>> = {
  UNAUTHORIZED: 'WWW-Authenticate',
  METHOD_NOT_ALLOWED: 'Allow',
  SESSION_NOT_READY: 'Retry-After',
  RATE_LIMIT_EXCEEDED: 'Retry-After',
  STREAM_LIMIT_EXCEEDED: 'Retry-After',
  NO_SERVERS_AVAILABLE: 'Retry-After',
  UNAVAILABLE: 'Retry-After',
};

/** Headers of an answer as references, those of every answer first. */
export function headerReferences(more: readonly string[] = []): Record<string, DocumentHeader> {
  const names = [...everyAnswer, ...more];
  return Object.fromEntries(
    names.map((name) => [name, { $ref: `#/components/headers/${name}` }] as const),
  );
}

/** Every error that an operation may answer with: its own, and those that its kind of route may. */
export function refusalsOf(route: Route): ErrorName[] {
  const { action } = route;
  const names: ErrorName[] = ['INVALID_REQUEST', 'METHOD_NOT_ALLOWED', 'INTERNAL', 'UNAVAILABLE'];
  if (action !== 'public') {
    names.push('UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED');
    if (!mayDo('viewer', action)) names.push('FORBIDDEN');
  }
  if (route.body !== undefined) names.push('PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE');
  const all = new Set([...names, ...route.refusals]);
  // In the table's order, which is that of their statuses.
  return (Object.keys(errors) as ErrorName[]).filter((name) => all.has(name));
}

/**
 * An operation's error answers by status, each with the names it may carry and an example of each.
 */
export function problemAnswers(
  route: Route,
  problem: DocumentSchema,
): Record<string, DocumentAnswer> {
  const byStatus = Map.groupBy(refusalsOf(route), (name) => errors[name].status);
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [`${status}`, answerWith(status, names, problem)]),
  );
}

function answerWith(status: number, names: ErrorName[], problem: DocumentSchema): DocumentAnswer {
  const headers = new Set(names.flatMap((name) => headersOf[name] ?? []));
  const fixed = {
    type: 'object',
    properties: { error: { type: 'string', enum: names }, code: { const: status } },
  };
  return {
    description: names.map((name) => `\`${name}\`: ${errors[name].message}`).join(' '),
    headers: headerReferences([...headers]),
    content: {
      'application/json': {
        schema: { allOf: [problem, fixed] },
        examples: Object.fromEntries(
          names.map((name) => [name, { value: problemBody(reject(name, problemContexts[name])) }]),
        ),
      },
    },
  };
}
