import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Type } from 'typebox';
import type { SessionState } from '#events/session.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';

/** The header of a request that may be repeated; 1 to 255 visible ASCII characters. */
export function idempotencyHeader(description: string) {
  const key = Type.String({
    pattern: '^[\\x21-\\x7e]{1,255}$',
    description,
    refusal: () => reject('INVALID_REQUEST', { field: 'Idempotency-Key' }),
  });
  return { 'Idempotency-Key': Type.Optional(key) };
}

/** The header of an answer that an earlier request with the same key produced. */
export const replayedHeader = {
  'Idempotent-Replayed': Type.Literal('true', {
    description: 'set where an earlier request with this Idempotency-Key did it',
  }),
};

/** The request's key, which its route has validated; null if it has none. */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['idempotency-key'];
  return typeof key === 'string' ? key : null;
}

/** The same for two bodies with the same fields, in any order. */
export function fingerprintOf(body: unknown): string {
  const canonical = JSON.stringify(body, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash('sha256').update(canonical).digest('base64url');
}

/** A client's retries are over by then: a client that sends the key again wants a new session. */
const KEY_ENDS_MS = 24 * 3_600_000;

/**
 * The rejection of a repeated create whose session ended long ago; null: the repeat is answered
 * with the session. The key is the session's id, so it cannot make another one.
 */
export function spentKey({ id, endedAt }: SessionState, now: number): Rejection | null {
  if (endedAt === null || now - Date.parse(endedAt) < KEY_ENDS_MS) return null;
  return reject(
    'IDEMPOTENCY_CONFLICT',
    { session_id: id, ended_at: endedAt },
    { message: 'The session of this Idempotency-Key ended over 24 hours ago; send a new key.' },
  );
}
