import { Compile } from 'typebox/schema';
import { expect } from 'vitest';
import type {
  DocumentOperation,
  DocumentSchema,
  OpenApiDocument,
} from '#src/roles/api/docs/openapi-document.ts';
import { errors, type ErrorName } from '#src/kernel/errors.ts';
import type { Reply } from '#test/support/clients/api-client.ts';

const RETRYABLE = [
  'SESSION_NOT_READY',
  'RATE_LIMIT_EXCEEDED',
  'BROWSER_UNREACHABLE',
  'NO_SERVERS_AVAILABLE',
  'UNAVAILABLE',
];
/** Errors about the path or the bytes, which are not errors of an operation. */
const OF_NO_OPERATION = [
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'INVALID_REQUEST',
  'RATE_LIMIT_EXCEEDED',
];

/**
 * Checks answers against the specification's rules for all of them, and against the document: it
 * must have the status, the error name and every field of the body.
 */
export function createConformance(document: OpenApiDocument) {
  const validators = new Map<string, ReturnType<typeof Compile>>();

  function validate(key: string, schema: DocumentSchema, body: unknown): void {
    let validator = validators.get(key);
    if (validator === undefined) {
      const { components } = closed(document) as OpenApiDocument;
      validator = Compile({ components, ...(closed(schema) as object) });
      validators.set(key, validator);
    }
    const [, flaws] = validator.Errors(body);
    if (!validator.Check(body)) expect(flaws, `body of ${key}`).toEqual([]);
  }

  /** @param sentAt when the request was sent, milliseconds since the epoch */
  function hold(method: string, path: string, reply: Reply, sentAt: number): void {
    holdRateLimit(reply, sentAt);
    if (reply.status >= 400 && method !== 'HEAD') holdProblem(reply);
    expect(reply.status, 'never a bug').not.toBe(500);
    if (method === 'HEAD') return;
    const operation = operationAt(document, method, path);
    if (operation === null) return expect(OF_NO_OPERATION).toContain(reply.body?.error);
    const key = `${operation.operationId} ${reply.status}`;
    const answer = operation.responses[reply.status];
    expect(answer, `${key} is documented`).toBeDefined();
    if (reply.status === 204 || reply.status === 304) return expect(reply.body).toBeNull();
    const contentType = String(reply.headers['content-type']).split(';', 1)[0] ?? '';
    const content = answer?.content?.[contentType];
    expect(content, `${key} ${contentType} is documented`).toBeDefined();
    if (content !== undefined && contentType === 'application/json')
      validate(key, content.schema, reply.body);
  }
  return { hold };
}

function holdRateLimit({ headers }: Reply, sentAt: number): void {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) => {
    const value = headers[`x-ratelimit-${name}`];
    expect(value, `x-ratelimit-${name}`).toMatch(/^\d+$/);
    return Number(value);
  }) as [number, number, number];
  expect(remaining).toBeLessThanOrEqual(limit);
  // An answer may come after the end of the window that its request was counted in.
  expect(reset - sentAt / 1000).toBeGreaterThan(-1);
  expect(reset - Date.now() / 1000).toBeLessThanOrEqual(60);
}

function holdProblem({ status, headers, body }: Reply): void {
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(Object.keys(body)).toEqual(['error', 'message', 'code', 'context']);
  expect(errors[body.error as ErrorName]?.status, body.error).toBe(status);
  expect(body.code).toBe(status);
  expect(body.message).toMatch(/^\S.*\.$/s);
  expect(body.context).toBeTypeOf('object');
  if (RETRYABLE.includes(body.error)) expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
  if (status === 401) expect(headers['www-authenticate']).toBe('Bearer');
  if (status === 405) expect(headers['allow']).toMatch(/^[A-Z]+(, [A-Z]+)*$/);
}

function operationAt(
  { paths }: OpenApiDocument,
  method: string,
  path: string,
): DocumentOperation | null {
  const verb = method.toLowerCase();
  const plain = path.split('?', 1)[0] ?? '';
  const segments = plain.split('/');
  // A path without parameters goes before one with them.
  const exact = paths[plain]?.[verb];
  if (exact !== undefined) return exact;
  const found = Object.entries(paths).find(([template]) => {
    const parts = template.split('/');
    return (
      parts.length === segments.length &&
      parts.every((part, at) => part === segments[at] || part.startsWith('{'))
    );
  });
  return found?.[1][verb] ?? null;
}

/** The same schema without undeclared properties: undocumented fields are not allowed. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const inner = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, closed(one)]));
  const isClosable =
    'properties' in value && 'required' in value && !('additionalProperties' in value);
  return isClosable ? { additionalProperties: false, ...inner } : inner;
}
