import { createHmac } from 'node:crypto';
import { exportSPKI, SignJWT, type JWTPayload } from 'jose';
import { describe, expect, it, test } from 'vitest';
import {
  authenticateByEither,
  createKeyAuthenticator,
  type Authenticate,
} from '#src/roles/api/auth/authenticate.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { CLOCK_SKEW_SECONDS, createJwtAuthenticator, secretKeys } from '#src/roles/api/auth/jwt.ts';
import {
  AUDIENCE,
  forge,
  goodClaims,
  ISSUER,
  newSigner,
} from '#test/support/servers/key-set-server.ts';

/** Which tokens are accepted, on a clock that stands still. */

const HOUR_SECONDS = 3_600;
const NOW = Math.floor(Date.now() / 1000);
const SECRET = 'a-secret-of-the-issuer-0123456789abcdef';
const LIMITS = { requestsPerMinute: 100, concurrentSessions: 5, credits: 600, queueWeight: 1 };

function authenticator(keys = secretKeys(SECRET)): Authenticate {
  return createJwtAuthenticator({
    keys,
    issuer: ISSUER,
    audience: AUDIENCE,
    limitsOf: (organizationId) => (organizationId === 'acme' ? LIMITS : null),
    now: () => NOW * 1000 + 999,
  });
}

function hs256(secret: string | Uint8Array, header: object, claims: JWTPayload): string {
  return forge({ alg: 'HS256', ...header }, claims, (signed) =>
    createHmac('sha256', secret).update(signed).digest('base64url'),
  );
}

const take = authenticator();
const sign = (claims: object) => hs256(SECRET, {}, goodClaims(claims as JWTPayload));
const without = (name: string) => {
  const { [name]: _, ...others } = goodClaims();
  return hs256(SECRET, {}, others);
};

test('a token is verified although API keys cannot be looked up, and a key is refused with 503', async () => {
  const deaf = createKeyAuthenticator(() => {
    throw new Unavailable('event-log');
  });
  const either = authenticateByEither(deaf, take);
  expect(await either(sign({}))).toMatchObject({ userId: 'ada' });
  await expect(either('bss_acme_key')).rejects.toThrow(Unavailable);
  await expect(either(sign({ exp: NOW - HOUR_SECONDS }))).rejects.toThrow(Unavailable);
});

describe('a valid token', () => {
  it('authenticates its user in its organization with its role', async () => {
    expect(await take(sign({}))).toEqual({
      organizationId: 'acme',
      role: 'member',
      userId: 'ada',
      keyHash: null,
      limits: LIMITS,
    });
  });

  test.each<[string, JWTPayload]>([
    ['an audience among others', { aud: ['other', AUDIENCE] }],
    ['a user of 256 characters', { sub: 'u'.repeat(256) }],
    ['a user in any script', { sub: 'Ада Лавлейс 😀' }],
    ['unknown claims', { email: 'ada@example', scope: 'all' }],
    ['just expired', { exp: NOW - CLOCK_SKEW_SECONDS + 1 }],
    ['about to begin', { nbf: NOW + CLOCK_SKEW_SECONDS }],
    ['the role owner', { role: 'owner' }],
    ['the role viewer', { role: 'viewer' }],
  ])('may have %s', async (_, claims) => {
    expect(await take(sign(claims))).toMatchObject({ organizationId: 'acme' });
  });
});

describe('a token is refused if it', () => {
  test.each<[string, object]>([
    ['has expired', { exp: NOW - CLOCK_SKEW_SECONDS }],
    ['is not yet valid', { nbf: NOW + CLOCK_SKEW_SECONDS + 1 }],
    ['expires at no time', { exp: 'tomorrow' }],
    ['is by another issuer', { iss: `${ISSUER}/` }],
    ['is by many issuers', { iss: [ISSUER] }],
    ['is for another audience', { aud: 'another' }],
    ['is for no audience', { aud: [] }],
    ['is of an organization that is not registered', { org_id: 'umbrella' }],
    ['is of an organization that is no id', { org_id: 'acme.session' }],
    ['is of organizations', { org_id: ['acme'] }],
    ['has a role that is none', { role: 'root' }],
    ['has a role of every object', { role: 'constructor' }],
    ['has roles', { role: ['owner'] }],
    ['has an empty user', { sub: '' }],
    ['has a user of 257 characters', { sub: 'u'.repeat(257) }],
    ['has a user that is a number', { sub: 7 }],
    ['has a user with a line feed', { sub: 'ada\nlovelace' }],
    ['has a user with half a surrogate pair', { sub: 'ada \ud83d' }],
  ])('%s', async (_, claims) => {
    expect(await take(sign(claims))).toBeNull();
  });

  test.each(['exp', 'iss', 'aud', 'sub', 'org_id', 'role'])('has no %s', async (claim) => {
    expect(await take(without(claim))).toBeNull();
  });

  test.each<[string, string]>([
    ['is unsigned', forge({ alg: 'none' }, goodClaims())],
    ['is unsigned, with alg in another case', forge({ alg: 'nOnE' }, goodClaims())],
    ['names HS256 and is unsigned', forge({ alg: 'HS256' }, goodClaims())],
    ['is signed with another secret', hs256(`${SECRET}x`, {}, goodClaims())],
    ['is signed with an empty secret', hs256('', {}, goodClaims())],
    [
      'names another algorithm than that of its signature',
      hs256(SECRET, { alg: 'HS384' }, goodClaims()),
    ],
    ['names no algorithm', hs256(SECRET, { alg: undefined }, goodClaims())],
    ['brings its own key', hs256('k', { jwk: { kty: 'oct', k: 'aw' } }, goodClaims())],
    ['has a critical extension', hs256(SECRET, { crit: ['b64'], b64: true }, {})],
    ['is truncated', hs256(SECRET, {}, goodClaims()).slice(0, -2)],
    ['is three dots', '..'],
    ['is no base64', 'a.b.c'],
  ])('%s', async (_, token) => {
    expect(await take(token)).toBeNull();
  });

  it('is signed by a longer hash than the configured one, with the right secret', async () => {
    const token = new SignJWT(goodClaims()).setProtectedHeader({ alg: 'HS512' });
    expect(await take(await token.sign(new TextEncoder().encode(SECRET)))).toBeNull();
  });
});

describe('where the issuer signs with RS256', async () => {
  const signer = await newSigner('RS256', 'one');
  const takeRsa = authenticator({ algorithms: ['RS256'], find: () => signer.publicKey });

  it('its tokens are accepted, and those of the same key by another algorithm are not', async () => {
    expect(await takeRsa(await signer.sign(goodClaims()))).toMatchObject({ userId: 'ada' });
    const pss = await newSigner('PS256', 'one');
    expect(await takeRsa(await pss.sign(goodClaims()))).toBeNull();
  });

  it('its public key is not accepted as a shared secret', async () => {
    const pem = await exportSPKI(signer.publicKey);
    const der = Buffer.from(pem.replaceAll(/-----.*-----|\n/g, ''), 'base64');
    const modulus = Buffer.from(String(signer.jwk.n), 'base64url');
    for (const secret of [pem, `${pem}\n`, der, modulus, JSON.stringify(signer.jwk)])
      for (const header of [{}, { kid: 'one' }, { alg: 'RS256' }])
        expect(await takeRsa(hs256(secret, header, goodClaims()))).toBeNull();
  });
});
