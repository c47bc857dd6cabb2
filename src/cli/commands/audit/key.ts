import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { calculateJwkThumbprint, CompactSign, compactVerify, importJWK, type JWK } from 'jose';
import { readConfig } from '#src/config/config.ts';
import { loadOrCreateSecret } from '#src/embedded/secrets.ts';
import type { Command } from '../../command.ts';

export const showAuditKey: Command = {
  name: 'audit key',
  summary: 'Show the public key that signs audits, and its fingerprint',
  options: {},
  readAlone: () => async () => show(readConfig(process.env).dataDir),
  read: () => async (session) => show(session.config.dataDir),
};

async function show(dataDir: string) {
  const { fingerprint, publicKey } = await openAuditKey(dataDir);
  const text = [`fingerprint  ${fingerprint}`, `public key   ${JSON.stringify(publicKey)}`];
  return { json: { fingerprint, public_key: publicKey }, text: text.join('\n') };
}

/** The key that signs the heads of audits. */
export type AuditKey = {
  publicKey: JWK;
  /** RFC 7638 thumbprint of the public key, for people to compare. */
  fingerprint: string;
  /** A compact JWS over the text with a detached payload. */
  sign(text: string): Promise<string>;
};

/** In the data folder; created by the first audit, readable only by its owner. */
const FILE = 'audit-key';
const ALGORITHM = 'EdDSA';

export async function openAuditKey(dataDir: string): Promise<AuditKey> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const jwk = JSON.parse(await loadOrCreateSecret(dataDir, FILE, newKey)) as JWK;
  const publicKey = publicOf(jwk);
  const fingerprint = await calculateJwkThumbprint(publicKey);
  const key = await importJWK(jwk, ALGORITHM);
  async function sign(text: string): Promise<string> {
    const header = { alg: ALGORITHM, kid: fingerprint, jwk: publicKey };
    const jws = new CompactSign(Buffer.from(text)).setProtectedHeader(header);
    const [protectedHeader, , signature] = (await jws.sign(key)).split('.');
    return `${protectedHeader}..${signature}`;
  }
  return { publicKey, fingerprint, sign };
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

/** Fingerprint of the key that signed the text; null if the signature is not valid. */
export async function signerOf(text: string, signature: string): Promise<string | null> {
  const [header = '', , bytes = ''] = signature.split('.');
  // Several base64url texts decode to the same bytes; accept only the canonical one.
  if (Buffer.from(bytes, 'base64url').toString('base64url') !== bytes) return null;
  const payload = Buffer.from(text).toString('base64url');
  try {
    let fingerprint = '';
    await compactVerify(
      `${header}.${payload}.${bytes}`,
      async ({ jwk }) => {
        const publicKey = publicOf(jwk ?? {});
        fingerprint = await calculateJwkThumbprint(publicKey);
        return importJWK(publicKey, ALGORITHM);
      },
      { algorithms: [ALGORITHM] },
    );
    return fingerprint;
  } catch {
    return null;
  }
}

function newKey(): string {
  return JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }));
}

function publicOf({ kty, crv, x }: JWK): JWK {
  return { kty, crv, x } as JWK;
}
