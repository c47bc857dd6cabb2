import { createHash, randomBytes } from 'node:crypto';

/** Random bytes of an id. */
const ID_BYTES = 16;
/** The bytes of so many ids are drawn at once: a draw takes as long for 4 KB as for 16 bytes. */
const IDS_DRAWN = 256;
let drawn = Buffer.alloc(0);
let used = 0;

/** A new id with 128 random bits, of [A-Za-z0-9_-]: `ses_…`, `wl_…`, `cmd_…`. */
export function newId(prefix: string): string {
  if (used === drawn.length) [drawn, used] = [randomBytes(ID_BYTES * IDS_DRAWN), 0];
  used += ID_BYTES;
  return `${prefix}_${drawn.toString('base64url', used - ID_BYTES, used)}`;
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
