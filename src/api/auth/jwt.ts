import { jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import { Role } from '#events/organization.ts';
import { isId } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import type { TierLimits } from '#src/domain/organization/tiers.ts';
import type { Authenticate, Caller } from './authenticate.ts';

/** Port: who may have signed a token, and how. A token's own header chooses among these alone. */
export type JwtKeys = {
  algorithms: readonly string[];
  /** @throws Unavailable where no key could be had so far; anything else: there is no such key. */
  find: JWTVerifyGetKey;
};

/** One secret that signer and service share, for HS256 alone: no other algorithm may use it. */
export function secretKeys(secret: string): JwtKeys {
  const key = new TextEncoder().encode(secret);
  return { algorithms: ['HS256'], find: () => key };
}

/** How far a signer's clock may be off: tokens live this much longer, and begin this earlier. */
export const CLOCK_SKEW_SECONDS = 30;

/** As long as an actor's id may be in the log. */
const SUBJECT_LENGTH_MAX = 256;

/**
 * JWTs: signature, issuer, audience and times are checked by jose; then `sub` is the user, `org_id`
 * an organization that has to be registered, `role` the user's role in it. A token cannot be
 * revoked before its `exp`, which it has to have.
 */
export function createJwtAuthenticator(options: {
  keys: JwtKeys;
  issuer: string;
  audience: string;
  /** null where there is no such organization. */
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
      return null; // whatever is wrong with it, the caller is told no more than that
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
  return limits === null ? null : { organizationId, role: known, userId: sub, limits };
}

/** What an event can hold as its actor: text in UTF-8, without control characters. */
function isUser(sub: string): boolean {
  const isText = typeof sub === 'string' && sub.isWellFormed();
  // oxlint-disable-next-line no-control-regex
  return isText && sub.length <= SUBJECT_LENGTH_MAX && /^[^\u0000-\u001f\u007f]+$/.test(sub);
}
