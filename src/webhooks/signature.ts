import { createHmac, hkdfSync } from 'node:crypto';

/** Signatures by the Standard Webhooks specification, version 1 with a symmetric secret. */

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;
/** How long the secret before the last rotation is signed with beside the new one. */
export const GRACE_MS = 24 * 3_600_000;

/** The secret of a webhook's generation as its receiver gets it: `whsec_` and base64. */
export type SecretOf = (webhookId: string, generation: number) => string;

/**
 * Secrets are derived, and stored nowhere: the events hold none.
 * @throws RangeError for a master key of less than 16 bytes
 */
export function createWebhookSecrets(masterKey: Uint8Array): SecretOf {
  if (masterKey.length < 16) throw new RangeError('the master key is shorter than 16 bytes');
  return (webhookId, generation) => {
    const purpose = `webhook secret: ${generation}`;
    const bytes = hkdfSync('sha256', masterKey, webhookId, purpose, SECRET_BYTES);
    return PREFIX + Buffer.from(bytes).toString('base64');
  };
}

/** The numbers of the secrets that are valid at a time (ms since the epoch), the newest first. */
export function validGenerations(
  { generation, rotatedAt }: { generation: number; rotatedAt?: string },
  now: number,
): number[] {
  const isInGrace = rotatedAt !== undefined && now - Date.parse(rotatedAt) < GRACE_MS;
  return isInGrace && generation > 1 ? [generation, generation - 1] : [generation];
}

export type Signed = {
  /** The same for every attempt: receivers recognize a repeated delivery by it. */
  id: string;
  /** Seconds since the epoch, of this attempt. */
  timestamp: number;
  body: string;
};

/** The headers of a delivery, with one signature for each secret. */
export function signedHeaders(
  { id, timestamp, body }: Signed,
  secrets: readonly string[],
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}
