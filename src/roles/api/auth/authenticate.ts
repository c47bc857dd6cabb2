import type { Role } from '#events/organization.ts';
import { hashKey } from '#src/kernel/ids.ts';
import type { TierLimits } from '#src/kernel/domain/organization/tiers.ts';

/** The caller, authenticated by the credential of the request. */
export type Caller = {
  organizationId: string;
  role: Role;
  userId: string;
  /** SHA-256 of the API key, in hex; null: the credential is a JWT. */
  keyHash: string | null;
  limits: TierLimits;
};

/**
 * Port: the holder of a credential, or null if the credential is not valid. Rejects with
 * Unavailable if that cannot be decided, and with nothing else.
 */
export type Authenticate = (credential: string) => Caller | null | Promise<Caller | null>;

/** Longer credentials are refused without a look-up. */
const CREDENTIAL_LENGTH_MAX = 16 * 1024;

/** The credential of an Authorization header with the scheme Bearer; null if there is none. */
export function bearerOf(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length > CREDENTIAL_LENGTH_MAX) return null;
  const space = authorization.indexOf(' ');
  if (space === -1 || authorization.slice(0, space).toLowerCase() !== 'bearer') return null;
  const credential = authorization.slice(space + 1).trim();
  return credential === '' ? null : credential;
}

/**
 * The password of an Authorization header with the scheme Basic; null if there is none. Clients of
 * WebDriver take an address with a name and a password, `https://user:KEY@host/wd/hub`.
 */
export function passwordOf(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length > CREDENTIAL_LENGTH_MAX) return null;
  const encoded = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(authorization)?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon === -1 || colon === text.length - 1 ? null : text.slice(colon + 1);
}

/**
 * API keys are looked up by hash, so neither the key nor the time of a comparison can leak.
 * @param holderOf may throw Unavailable: the result then is a promise that rejects with it
 */
export function createKeyAuthenticator(holderOf: (keyHash: string) => Caller | null): Authenticate {
  return (credential) => {
    try {
      return holderOf(hashKey(credential));
    } catch (error) {
      return Promise.reject(error);
    }
  };
}

/**
 * API keys first, as their look-up is immediate. A credential in the form of a JWT is then verified
 * as one, also while keys cannot be looked up.
 */
export function authenticateByEither(keys: Authenticate, jwts: Authenticate): Authenticate {
  return (credential) => {
    const holder = keys(credential);
    if (!looksLikeJwt(credential)) return holder;
    if (!(holder instanceof Promise)) return holder ?? jwts(credential);
    return holder.catch(async (unavailable: unknown) => {
      const verified = await jwts(credential);
      if (verified === null) throw unavailable;
      return verified;
    });
  };
}

/** Three parts between dots; the last is empty in an unsigned token. */
function looksLikeJwt(credential: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(credential);
}
