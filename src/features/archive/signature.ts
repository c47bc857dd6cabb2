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

/** The bytes of a file that holds a value in its canonical form, and its signature. */
export async function signedFile(name: string, value: object, signer: Signer): Promise<Buffer> {
  const text = JSON.stringify(value);
  return Buffer.from(`{"${name}":${text},"signature":"${await signer.sign(text)}"}\n`);
}

const SIGNED = /^\{"(\w+)":(\{.*\}),"signature":"([\w-]+\.\.[\w-]+)"\}\n$/;

/**
 * The value of such a file, without a look at the signature, which is over its `JSON.stringify`.
 * @throws Error if it is not one
 */
export function parseSigned(name: string, file: Buffer): { value: unknown; signature: string } {
  const text = file.toString();
  const [, found, signed = '', signature = ''] = SIGNED.exec(text) ?? [];
  // Bytes that are not UTF-8 would decode to another text.
  if (found !== name || !Buffer.from(text).equals(file)) throw new Error(`it is no signed ${name}`);
  const value: unknown = JSON.parse(signed);
  if (JSON.stringify(value) !== signed) throw new Error('it is not in its canonical form');
  return { value, signature };
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
        const known = await keyOf(publicOf(jwk ?? {}));
        ({ fingerprint } = known);
        return known.key;
      },
      { algorithms: [ALGORITHM] },
    );
    return fingerprint;
  } catch {
    return null;
  }
}

type KnownKey = { fingerprint: string; key: Awaited<ReturnType<typeof importJWK>> };

/** An archive has few keys, and to read one takes longer than to verify a signature. */
const KEYS_MAX = 8;
const keys = new Map<string, KnownKey>();

async function keyOf(publicKey: JWK): Promise<KnownKey> {
  const id = JSON.stringify(publicKey);
  const found = keys.get(id);
  if (found !== undefined) return found;
  const fingerprint = await calculateJwkThumbprint(publicKey);
  const known = { fingerprint, key: await importJWK(publicKey, ALGORITHM) };
  if (keys.size >= KEYS_MAX) keys.clear();
  keys.set(id, known);
  return known;
}

/** The public part of a key. */
export function publicOf({ kty, crv, x }: JWK): JWK {
  return { kty, crv, x } as JWK;
}
