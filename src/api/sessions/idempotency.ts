import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { reject, type Rejected } from '#src/errors.ts';
import type { Documented } from '../http/route.ts';

const PATTERN = /^[\x21-\x7e]{1,255}$/;

/** The header that makes a request one that may be repeated, as it is documented. */
export function idempotencyHeader(description: string): Record<string, Documented> {
  return { 'Idempotency-Key': { schema: Type.String({ pattern: PATTERN.source }), description } };
}

/** The header of an answer that an earlier request with the same key made. */
export const replayedHeader: Record<string, Documented> = {
  'Idempotent-Replayed': {
    schema: Type.Literal('true'),
    description: 'set where an earlier request with this Idempotency-Key did it',
  },
};

/** The request's key, null where it has none; 1 to 255 visible ASCII characters. */
export function readIdempotencyKey(request: FastifyRequest): string | null | Rejected {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && PATTERN.test(key)) return key;
  return reject('INVALID_REQUEST', { field: 'Idempotency-Key' });
}

/** The same for two bodies that ask for the same, whatever the order of their fields. */
export function fingerprintOf(body: unknown): string {
  const canonical = JSON.stringify(body, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash('sha256').update(canonical).digest('base64url');
}
