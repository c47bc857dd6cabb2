import { BadConfig, secret, type Read } from './parse.ts';

/** Required claims of JWTs, and the keys that sign them. */
export type JwtConfig = {
  issuer: string;
  audience: string;
  signedBy: { secret: string } | { keySetUrl: string; algorithms: readonly string[] };
};

/** HS256 requires a key of at least 256 bits (RFC 7518 §3.2). */
const SECRET_LENGTH_MIN = 32;

/** Asymmetric algorithms only: a key set never contains a shared secret. */
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
  JWT_SECRET: {
    fallback: '',
    meaning: 'HS256 secret of JWTs, at least 32 characters',
  },
  JWT_JWKS_URL: {
    fallback: '',
    meaning: 'https:// address of the key set of JWTs, in place of JWT_SECRET',
  },
  JWT_ALGORITHMS: {
    fallback: '',
    meaning: 'accepted algorithms of the key set, as RS256,ES256; empty: all',
  },
  JWT_ISSUER: {
    fallback: '',
    meaning: 'required iss of JWTs; needed with JWT_SECRET or JWT_JWKS_URL',
  },
  JWT_AUDIENCE: {
    fallback: '',
    meaning: 'required aud of JWTs; needed as JWT_ISSUER is',
  },
} as const;
type Name = keyof typeof jwtVariables;

/** null: JWTs are off. @throws BadConfig naming the variable that is wrong or missing */
export function readJwt(read: Read<Name>): JwtConfig | null {
  const sharedSecret = secret('JWT_SECRET', (name) => read(name) || null, SECRET_LENGTH_MIN);
  const keySetUrl = read('JWT_JWKS_URL');
  if (sharedSecret !== null && keySetUrl !== '')
    throw new BadConfig('JWT_SECRET: not together with JWT_JWKS_URL; set one of them');
  if (keySetUrl === '' && read('JWT_ALGORITHMS') !== '')
    throw new BadConfig('JWT_ALGORITHMS: only with JWT_JWKS_URL; JWT_SECRET is for HS256 alone');
  if (sharedSecret === null && keySetUrl === '') {
    for (const name of ['JWT_ISSUER', 'JWT_AUDIENCE'] as const)
      if (read(name) !== '')
        throw new BadConfig(`${name}: has no effect without JWT_SECRET or JWT_JWKS_URL`);
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

/** Query parameters are allowed: some providers select the key set by them. */
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
