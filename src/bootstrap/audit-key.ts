import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { calculateJwkThumbprint, type JWK } from 'jose';
import { createSigner, publicOf, type Signer } from '#src/archive/signature.ts';
import { loadOrCreateSecret } from '#src/embedded/secrets.ts';

/** The key that signs the heads of audits and the manifests of the archive. */
export type AuditKey = Signer & { publicKey: JWK };

/** In the data folder; created by the first audit or archive, readable only by its owner. */
const FILE = 'audit-key';

export async function openAuditKey(dataDir: string): Promise<AuditKey> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const jwk = JSON.parse(await loadOrCreateSecret(dataDir, FILE, newKey)) as JWK;
  return createSigner(jwk);
}

/** Fingerprint of the data folder's key; null if there is none. */
export async function knownFingerprint(dataDir: string): Promise<string | null> {
  try {
    const text = await readFile(join(dataDir, FILE), 'utf8');
    return await calculateJwkThumbprint(publicOf(JSON.parse(text) as JWK));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

function newKey(): string {
  return JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }));
}
