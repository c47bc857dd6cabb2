import { BadConfig, secret, type Read } from './parse.ts';

/** Which tokens are taken, and whose signature on them. */
export type JwtConfig = {
  issuer: string;
  audience: string;
  signedBy: { secret: string } | { keySetUrl: string; algorithms: readonly string[] };
};

/** HS256 wants a key as long as its hash: 256 bits (RFC 7518 §3.2). */
const SECRET_LENGTH_MIN = 32;

/** Signatures that a key set's public keys may check; a shared secret is in none. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;

export const jwtVariables = {
  JWT_SECRET: { fallback: '', meaning: 'HS256 secret of JWTs, from 32 characters; empty: none' },
  JWT_JWKS_URL: { fallback: '', meaning: 'https:// key set of JWTs, in place of JWT_SECRET' },
  JWT_ALGORITHMS: {
    fallback: '',
    meaning: 'which of the set’s keys count, like RS256,ES256; empty: all, each for its own',
  },
  JWT_ISSUER: { fallback: '', meaning: 'iss of JWTs; needed beside either of them' },
  JWT_AUDIENCE: { fallback: '', meaning: 'aud of JWTs; needed beside either of them' },
} as const;
type Name = keyof typeof jwtVariables;

/** null: JWTs are off. @throws BadConfig naming the variable that is wrong or missing */
export function readJwt(read: Read<Name>): JwtConfig | null {
  const sharedSecret = secret('JWT_SECRET', (name) => read(name) || null, SECRET_LENGTH_MIN);
  const keySetUrl = read('JWT_JWKS_URL');
  if (sharedSecret !== null && keySetUrl !== '')
    throw new BadConfig('JWT_SECRET: not together with JWT_JWKS_URL; one of them says who signs');
  if (keySetUrl === '' && read('JWT_ALGORITHMS') !== '')
    throw new BadConfig('JWT_ALGORITHMS: only with JWT_JWKS_URL; JWT_SECRET is for HS256 alone');
  if (sharedSecret === null && keySetUrl === '') {
    for (const name of ['JWT_ISSUER', 'JWT_AUDIENCE'] as const)
      if (read(name) !== '')
        throw new BadConfig(`${name}: of no use without JWT_SECRET or JWT_JWKS_URL`);
    return null;
  }
  const needed = (name: Name) => {
    const beside = sharedSecret === null ? 'JWT_JWKS_URL' : 'JWT_SECRET';
    if (read(name) === '') throw new BadConfig(`${name}: needed beside ${beside}`);
    return read(name);
  };
  const signedBy =
    sharedSecret === null
      ? { keySetUrl: readUrl(keySetUrl), algorithms: readAlgorithms(read('JWT_ALGORITHMS')) }
      : { secret: sharedSecret };
  return { issuer: needed('JWT_ISSUER'), audience: needed('JWT_AUDIENCE'), signedBy };
}

/** Kept as it is: some providers tell their sets apart by the query. */
function readUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !['https:', 'http:'].includes(url.protocol) || url.username !== '')
    throw new BadConfig('JWT_JWKS_URL: has to be an https:// or http:// address, without a user');
  return url.href;
}

function readAlgorithms(text: string): readonly string[] {
  if (text === '') return algorithms;
  return text.split(',').map((part) => {
    const known = algorithms.find((algorithm) => algorithm === part.trim());
    if (known === undefined)
      throw new BadConfig(`JWT_ALGORITHMS: ${part} is none of ${algorithms.join(', ')}`);
    return known;
  });
}
