import { Type, type TSchema } from 'typebox';
import { errors, problemBody, reject, type ErrorName } from '#src/kernel/errors.ts';
import { mayDo } from '#src/kernel/domain/organization/roles.ts';
import { Problem } from '../schemas/sessions.ts';
import type { RouteConfig } from '../http/route.ts';
import { errorContexts } from './error-contexts.ts';
import type { DocumentHeader } from './openapi-document.ts';

/** Headers that more than one response has, as components of the document. */
export const sharedHeaders: Record<string, DocumentHeader> = {
  'X-RateLimit-Limit': {
    description: 'units allowed in the window, which is a minute; a usual request takes one',
    schema: { type: 'integer', minimum: 0, examples: [1000] },
  },
  'X-RateLimit-Remaining': {
    description: 'units left in the window',
    schema: { type: 'integer', minimum: 0, examples: [997] },
  },
  'X-RateLimit-Reset': {
    description: 'end of the window, Unix time in seconds',
    schema: { type: 'integer', examples: [1_795_167_060] },
  },
  'Retry-After': {
    description: 'seconds until a retry may help',
    schema: { type: 'integer', minimum: 1, examples: [5] },
  },
  'WWW-Authenticate': {
    description: 'how to authenticate',
    schema: { type: 'string', const: 'Bearer' },
  },
  Allow: { description: 'the methods that the path supports', schema: { type: 'string' } },
};

/** Every response has them. */
export const rateLimitHeaders = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];

/** Errors that come with further headers. */
const headersOf: Partial<Record<ErrorName, string>> = {
  UNAUTHORIZED: 'WWW-Authenticate',
  METHOD_NOT_ALLOWED: 'Allow',
  SESSION_NOT_READY: 'Retry-After',
  RATE_LIMIT_EXCEEDED: 'Retry-After',
  STREAM_LIMIT_EXCEEDED: 'Retry-After',
  BROWSER_UNREACHABLE: 'Retry-After',
  NO_SERVERS_AVAILABLE: 'Retry-After',
  UNAVAILABLE: 'Retry-After',
};

type Operation = Pick<RouteConfig, 'action' | 'refusals'> & {
  isUnlimited: boolean;
  hasBody: boolean;
};

/** All errors of an operation: its own, and those of every route of its kind. */
function errorNames({ action, refusals, isUnlimited, hasBody }: Operation): ErrorName[] {
  const names: ErrorName[] = ['INVALID_REQUEST', 'METHOD_NOT_ALLOWED', 'INTERNAL', 'UNAVAILABLE'];
  if (!isUnlimited) names.push('RATE_LIMIT_EXCEEDED');
  if (action !== 'public') {
    names.push('UNAUTHORIZED');
    if (action === 'operator') names.push('NOT_FOUND');
    else if (!mayDo('viewer', action)) names.push('FORBIDDEN');
  }
  if (hasBody) names.push('PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE');
  const all = new Set([...names, ...refusals]);
  // In the table's order, which is the order of their statuses.
  return (Object.keys(errors) as ErrorName[]).filter((name) => all.has(name));
}

/** An operation's error responses by status, each with its error names and an example of each. */
export function errorResponses(operation: Operation): Record<string, unknown> {
  const byStatus = Map.groupBy(errorNames(operation), (name) => errors[name].status);
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [`${status}`, errorResponse(status, names)]),
  );
}

function errorResponse(status: number, names: ErrorName[]) {
  const headers = [...new Set(names.flatMap((name) => headersOf[name] ?? []))];
  const fixed = {
    type: 'object',
    properties: {
      error: { type: 'string', enum: names },
      code: { type: 'integer', enum: [status] },
    },
  };
  const examples = names.map((name) => [
    name,
    { value: problemBody(reject(name, errorContexts[name])) },
  ]);
  return {
    description: names.map((name) => `\`${name}\`: ${errors[name].message}`).join(' '),
    headers: Object.fromEntries(headers.map((name): [string, TSchema] => [name, Type.Unknown()])),
    content: {
      'application/json': {
        schema: { allOf: [Problem, fixed] },
        examples: Object.fromEntries(examples) as Record<string, unknown>,
      },
    },
  };
}
