import { createHmac, hkdfSync } from 'node:crypto';
import type { MasterKeys } from '#src/kernel/master-keys.ts';

/** Signatures by the Standard Webhooks specification, version 1 with a symmetric secret. */

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;
/** How long a secret is signed with beside the newer ones after its rotation. */
export const GRACE_MS = 24 * 3_600_000;

/** A secret as its receiver gets it is `whsec_` and base64. */
export type WebhookSecrets = {
  /** The secret of a webhook's generation. */
  secretOf(webhookId: string, generation: number): string;
  /**
   * The secrets to sign with, the newest first: a receiver that has the secret of an older master
   * key accepts the signature until that key is taken away, or its webhook is rotated.
   */
  secretsOf(webhookId: string, generations: readonly number[]): string[];
};

/** Secrets are derived, and stored nowhere: the events hold none. */
export function createWebhookSecrets({ current, all }: MasterKeys): WebhookSecrets {
  return {
    secretOf: (webhookId, generation) => derive(current.bytes, webhookId, generation),
    secretsOf: (webhookId, generations) =>
      generations.flatMap((number) => all.map(({ bytes }) => derive(bytes, webhookId, number))),
  };
}

function derive(key: Uint8Array, webhookId: string, generation: number): string {
  const purpose = `webhook secret: ${generation}`;
  const bytes = hkdfSync('sha256', key, webhookId, purpose, SECRET_BYTES);
  return PREFIX + Buffer.from(bytes).toString('base64');
}

type Rotations = {
  generation: number;
  rotatedAt?: string;
  /** Newest first. */
  earlierRotations?: readonly string[];
};

/** The numbers of the secrets that are valid at a time (ms since the epoch), the newest first. */
export function validGenerations(
  { generation, rotatedAt, earlierRotations = [] }: Rotations,
  now: number,
): number[] {
  if (rotatedAt === undefined) return [generation];
  const earlier = [rotatedAt, ...earlierRotations]
    .map((at, index) => ({ at: Date.parse(at), number: generation - 1 - index }))
    .filter(({ at, number }) => number >= 1 && now - at < GRACE_MS);
  return [generation, ...earlier.map(({ number }) => number)];
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
