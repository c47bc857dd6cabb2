import { calculateJwkThumbprint, CompactSign, compactVerify, importJWK, type JWK } from 'jose';

/** A key that signs the heads of audits and the manifests of segments. */
export type Signer = {
  /** RFC 7638 thumbprint of the public key, for people to compare. */
  fingerprint: string;
  /** A compact JWS over the text with a detached payload. */
  sign(text: string): Promise<string>;
};

const ALGORITHM = 'EdDSA';

/** @param jwk a private Ed25519 key */
export async function createSigner(jwk: JWK): Promise<Signer & { publicKey: JWK }> {
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

/** The public part of a key. */
export function publicOf({ kty, crv, x }: JWK): JWK {
  return { kty, crv, x } as JWK;
}
