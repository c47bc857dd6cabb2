import { jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import { Role } from '#events/organization.ts';
import { isId } from '#events/subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { TierLimits } from '#src/kernel/domain/organization/tiers.ts';
import type { Authenticate, Caller } from './authenticate.ts';

/**
 * Port: keys that may have signed a token, and their algorithms. A token's header only chooses
 * among them.
 */
export type JwtKeys = {
  algorithms: readonly string[];
  /** @throws Unavailable if no key could be fetched yet; any other error: there is no such key. */
  find: JWTVerifyGetKey;
};

/**
 * One secret that signer and service share. It is for HS256 alone: no other algorithm may use it.
 */
export function secretKeys(secret: string): JwtKeys {
  const key = new TextEncoder().encode(secret);
  return { algorithms: ['HS256'], find: () => key };
}

/**
 * How far a signer's clock may differ: tokens live this much longer and begin this much earlier.
 */
export const CLOCK_SKEW_SECONDS = 30;

/** The longest actor id that an event can hold. */
const SUBJECT_LENGTH_MAX = 256;

/**
 * JWTs. jose checks signature, issuer, audience and times. `sub` is the user, `org_id` a registered
 * organization, `role` the user's role in it. `exp` is required, as a token cannot be revoked
 * before it.
 */
export function createJwtAuthenticator(options: {
  keys: JwtKeys;
  issuer: string;
  audience: string;
  /** null if there is no such organization. */
  limitsOf: (organizationId: string) => TierLimits | null;
  now: () => number;
}): Authenticate {
  const { keys, issuer, audience, limitsOf, now } = options;
  const rules = {
    algorithms: [...keys.algorithms],
    issuer,
    audience,
    requiredClaims: ['exp', 'sub', 'org_id', 'role'],
    clockTolerance: CLOCK_SKEW_SECONDS,
  };
  return async function authenticate(credential) {
    try {
      const currentDate = new Date(now());
      const { payload } = await jwtVerify(credential, keys.find, { ...rules, currentDate });
      return callerOf(payload, limitsOf);
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      return null; // every flaw gets the same answer
    }
  };
}

function callerOf(
  { sub, org_id: organizationId, role }: JWTPayload,
  limitsOf: (organizationId: string) => TierLimits | null,
): Caller | null {
  const known = Role.anyOf.find((one) => one.const === role)?.const;
  if (known === undefined || sub === undefined || !isUser(sub)) return null;
  if (typeof organizationId !== 'string' || !isId(organizationId)) return null;
  const limits = limitsOf(organizationId);
  return limits === null
    ? null
    : { organizationId, role: known, userId: sub, keyHash: null, limits };
}

/** Text that an event can hold as its actor: UTF-8, without control characters. */
function isUser(sub: string): boolean {
  const isText = typeof sub === 'string' && sub.isWellFormed();
  // oxlint-disable-next-line no-control-regex
  return isText && sub.length <= SUBJECT_LENGTH_MAX && /^[^\u0000-\u001f\u007f]+$/.test(sub);
}
