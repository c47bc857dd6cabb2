import {
  authenticateByEither,
  createKeyAuthenticator,
  type Authenticate,
} from './api/auth/authenticate.ts';
import type { Credentials } from './api/auth/api-keys.ts';
import { followKeySet } from './api/auth/jwt-key-set.ts';
import { createJwtAuthenticator, secretKeys, type JwtKeys } from './api/auth/jwt.ts';
import type { Ground } from './bootstrap/infrastructure.ts';
import type { JwtConfig } from './config/jwt.ts';

/** Who comes in: by an API key, and where it is configured by a JWT. */
export async function composeAuthenticate(
  { config: { jwt }, desk, log }: Ground,
  credentials: Credentials,
  stack: AsyncDisposableStack,
): Promise<Authenticate> {
  const byKey = createKeyAuthenticator((hash) => credentials.holderOf(hash));
  if (jwt === null) return byKey;
  const keys = await keysOf(jwt);
  const limitsOf = (organizationId: string) => credentials.limitsOf(organizationId);
  const { issuer, audience } = jwt;
  const byJwt = createJwtAuthenticator({ keys, issuer, audience, limitsOf, now: desk.now });
  return authenticateByEither(byKey, byJwt);

  async function keysOf({ signedBy }: JwtConfig): Promise<JwtKeys> {
    if ('secret' in signedBy) return secretKeys(signedBy.secret);
    const { keySetUrl: url, algorithms } = signedBy;
    return stack.use(await followKeySet({ url, algorithms, log }));
  }
}
