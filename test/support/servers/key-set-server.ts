import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type JWK, type JWTPayload } from 'jose';

export const ISSUER = 'https://login.example';
export const AUDIENCE = 'browser-sessions';

/** The default claims of a token: issuer, audience, subject and times. */
export function goodClaims(more: JWTPayload = {}): JWTPayload {
  const now = Math.floor(Date.now() / 1000);
  const standard = { iss: ISSUER, aud: AUDIENCE, exp: now + 600, iat: now };
  return { ...standard, sub: 'ada', org_id: 'acme', role: 'member', ...more };
}

/** A signer's key pair, with the public key in the form of a key set. */
export async function newSigner(alg: string, kid: string) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk: JWK = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
  async function sign(claims: JWTPayload, header: object = {}): Promise<string> {
    return new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(privateKey);
  }
  return { jwk, publicKey, sign };
}

/** A token with this header and these claims, signed by `signatureOf`. */
export function forge(
  header: object,
  claims: JWTPayload,
  signatureOf: (signed: string) => string = () => '',
): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part(header)}.${part(claims)}`;
  return `${signed}.${signatureOf(signed)}`;
}

/** An issuer's server; it serves the keys in `keys`, unless `answer` answers instead. */
export async function startKeySetServer() {
  const state = {
    keys: [] as JWK[],
    answer: null as ((request: IncomingMessage, response: ServerResponse) => void) | null,
    fetches: 0,
  };
  const server = createServer((request, response) => {
    state.fetches += 1;
    if (state.answer !== null) return state.answer(request, response);
    response.setHeader('content-type', 'application/jwk-set+json');
    response.end(JSON.stringify({ keys: state.keys }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    state,
    url: `http://127.0.0.1:${port}/keys`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}
