import { createHash, randomBytes } from 'node:crypto';

/** A new id with 128 random bits, of [A-Za-z0-9_-]: `ses_…`, `wl_…`, `key_…`. */
export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(16).toString('base64url')}`;
}

/**
 * The same id for the same parts, always: a request repeated with its Idempotency-Key finds the
 * session that the first one created, because it derives the same id.
 */
export function derivedId(prefix: string, ...parts: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest();
  return `${prefix}_${hash.subarray(0, 16).toString('base64url')}`;
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
  return createHash('sha256').update(apiKey).digest('hex');
}
