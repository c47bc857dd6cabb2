import { hash, randomBytes, randomUUID } from 'node:crypto';

/**
 * A new id with 122 random bits, of [A-Za-z0-9_-]: `ses_…`, `wl_…`, `key_…`. It holds a UUID, since
 * the runtime draws the bytes of 128 of them at once; a draw of its own costs each id 60 µs.
 */
export function newId(prefix: string): string {
  const bytes = Buffer.from(randomUUID().replaceAll('-', ''), 'hex');
  return `${prefix}_${bytes.toString('base64url')}`;
}

/**
 * The same id for the same parts, always: a request repeated with its Idempotency-Key finds the
 * session that the first one created, because it derives the same id.
 */
export function derivedId(prefix: string, ...parts: readonly string[]): string {
  const digest = hash('sha256', JSON.stringify(parts), 'buffer');
  return `${prefix}_${digest.subarray(0, 16).toString('base64url')}`;
}

/**
 * `bss_<organization>_…` with 192 random bits: the organization is readable, the rest cannot be
 * guessed.
 */
export function newApiKey(organizationId: string): string {
  return `bss_${organizationId}_${randomBytes(24).toString('base64url')}`;
}

/** An API key as the event store keeps it: its SHA-256 in hex. */
export function hashKey(apiKey: string): string {
  return hash('sha256', apiKey, 'hex');
}
