import {
  BadConfig,
  list,
  oneOf,
  optional,
  secret,
  text,
  type Form,
  type Values,
  variable,
} from './parse.ts';

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

/** Query parameters are allowed: some providers select the key set by them. */
const keySetUrl: Form<string> = {
  says: '',
  parse(given, name) {
    const url = URL.parse(given);
    if (url === null || !['https:', 'http:'].includes(url.protocol) || url.username !== '')
      throw new BadConfig(`${name}: has to be an https:// or http:// address, without a user`);
    return url.href;
  },
};

export const jwtVariables = {
  JWT_SECRET: variable(
    optional(secret(SECRET_LENGTH_MIN)),
    '',
    'HS256 secret of JWTs, at least 32 characters',
  ),
  JWT_JWKS_URL: variable(
    optional(keySetUrl),
    '',
    'https:// address of the key set of JWTs, in place of JWT_SECRET',
  ),
  JWT_ALGORITHMS: variable(
    text,
    '',
    'accepted algorithms of the key set, as RS256,ES256; empty: all',
  ),
  JWT_ISSUER: variable(text, '', 'required iss of JWTs; needed with JWT_SECRET or JWT_JWKS_URL'),
  JWT_AUDIENCE: variable(text, '', 'required aud of JWTs; needed as JWT_ISSUER is'),
} as const;

/** null: JWTs are off. @throws BadConfig naming the variable that is wrong or missing */
export function readJwt(values: Values<typeof jwtVariables>): JwtConfig | null {
  const { JWT_SECRET: sharedSecret, JWT_JWKS_URL: address, JWT_ALGORITHMS: accepted } = values;
  if (sharedSecret !== null && address !== null)
    throw new BadConfig('JWT_SECRET: not together with JWT_JWKS_URL; set one of them');
  if (address === null && accepted !== '')
    throw new BadConfig('JWT_ALGORITHMS: only with JWT_JWKS_URL; JWT_SECRET is for HS256 alone');
  if (sharedSecret === null && address === null) {
    for (const name of ['JWT_ISSUER', 'JWT_AUDIENCE'] as const)
      if (values[name] !== '')
        throw new BadConfig(`${name}: has no effect without JWT_SECRET or JWT_JWKS_URL`);
    return null;
  }
  const needed = (name: 'JWT_ISSUER' | 'JWT_AUDIENCE') => {
    const beside = sharedSecret === null ? 'JWT_JWKS_URL' : 'JWT_SECRET';
    if (values[name] === '') throw new BadConfig(`${name}: needed beside ${beside}`);
    return values[name];
  };
  const signedBy =
    address === null
      ? { secret: sharedSecret ?? '' }
      : { keySetUrl: address, algorithms: algorithmsIn(accepted) };
  return { issuer: needed('JWT_ISSUER'), audience: needed('JWT_AUDIENCE'), signedBy };
}

function algorithmsIn(accepted: string): readonly string[] {
  const named = list(oneOf(...algorithms)).parse(accepted, 'JWT_ALGORITHMS');
  return named.length > 0 ? named : algorithms;
}
