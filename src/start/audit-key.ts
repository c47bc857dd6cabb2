import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { calculateJwkThumbprint, type JWK } from 'jose';
import { createSigner, publicOf, type Signer } from '#src/features/archive/signature.ts';
import { loadOrCreateSecret } from '#src/start/embedded/secrets.ts';

/** The key that signs the heads of audits and the manifests of the archive. */
export type AuditKey = Signer & { publicKey: JWK };

/** Where it is: the file that AUDIT_KEY_FILE names, else one in the data folder. */
export type KeyPlace = { dataDir: string; auditKeyFile: string | null };

/** The archive is one chain with one signer: AUDIT_KEY_FILE is for audits alone. */
export function archiveKeyPlace({ dataDir }: { dataDir: string }): KeyPlace {
  return { dataDir, auditKeyFile: null };
}

/** In the data folder; created by the first audit or archive, readable only by its owner. */
const FILE = 'audit-key';

/** The key. One of the data folder is made if it is not there; a named one has to be there. */
export async function openAuditKey({ dataDir, auditKeyFile }: KeyPlace): Promise<AuditKey> {
  if (auditKeyFile !== null) return createSigner(parse(await readFile(auditKeyFile, 'utf8')));
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  return createSigner(parse(await loadOrCreateSecret(dataDir, FILE, newKey)));
}

/** The key; null if there is none. */
export async function findAuditKey(place: KeyPlace): Promise<AuditKey | null> {
  const jwk = await readJwk(place);
  return jwk === null ? null : createSigner(jwk);
}

/** The key's fingerprint; null if there is none. */
export async function knownFingerprint(place: KeyPlace): Promise<string | null> {
  const jwk = await readJwk(place);
  return jwk === null ? null : calculateJwkThumbprint(publicOf(jwk));
}

async function readJwk({ dataDir, auditKeyFile }: KeyPlace): Promise<JWK | null> {
  try {
    return parse(await readFile(auditKeyFile ?? join(dataDir, FILE), 'utf8'));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

function parse(text: string): JWK {
  return JSON.parse(text) as JWK;
}

function newKey(): string {
  return JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }));
}
