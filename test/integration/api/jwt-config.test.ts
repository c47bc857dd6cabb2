import { describe, expect, it, test } from 'vitest';
import { readConfig } from '#src/kernel/config/config.ts';
import { failToStart } from '#test/support/service/main-process.ts';

/** The variables that configure JWTs: either all of them are set, or none. */

const SECRET = 'a-secret-of-the-issuer-0123456789abcdef';
const WHO = { JWT_ISSUER: 'https://login.example', JWT_AUDIENCE: 'browser-sessions' };
const KEYS = { JWT_JWKS_URL: 'https://login.example/keys?policy=b2c' };

describe('a configuration', () => {
  it('has no JWTs if no variable of theirs is set', () => {
    expect(readConfig({}).jwt).toBeNull();
  });

  it('accepts JWTs of a shared secret', () => {
    expect(readConfig({ ...WHO, JWT_SECRET: SECRET }).jwt).toEqual({
      issuer: 'https://login.example',
      audience: 'browser-sessions',
      signedBy: { secret: SECRET },
    });
  });

  it('accepts JWTs of a key set, by any public-key algorithm or only by the named ones', () => {
    expect(readConfig({ ...WHO, ...KEYS }).jwt?.signedBy).toEqual({
      keySetUrl: KEYS.JWT_JWKS_URL,
      algorithms: expect.arrayContaining(['RS256', 'ES256', 'EdDSA']),
    });
    const named = readConfig({ ...WHO, ...KEYS, JWT_ALGORITHMS: 'ES256, RS256' });
    expect(named.jwt?.signedBy).toMatchObject({ algorithms: ['ES256', 'RS256'] });
    const all = JSON.stringify(readConfig({ ...WHO, ...KEYS }).jwt);
    expect(all).not.toMatch(/HS256|none/);
  });
});

describe('an invalid configuration', () => {
  test.each<[what: string, env: Record<string, string>, said: RegExp]>([
    [
      'a secret and a key set',
      { ...WHO, ...KEYS, JWT_SECRET: SECRET },
      /^JWT_SECRET: not together/,
    ],
    ['a short secret', { ...WHO, JWT_SECRET: 'short' }, /^JWT_SECRET: needs 32 to 512/],
    ['no issuer', { JWT_SECRET: SECRET, JWT_AUDIENCE: 'a' }, /^JWT_ISSUER: needed beside JWT_SEC/],
    ['no audience', { ...KEYS, JWT_ISSUER: 'i' }, /^JWT_AUDIENCE: needed beside JWT_JWKS_URL/],
    ['an issuer alone', { JWT_ISSUER: 'i' }, /^JWT_ISSUER: has no effect without/],
    [
      'an algorithm of secrets',
      { ...WHO, ...KEYS, JWT_ALGORITHMS: 'HS256' },
      /^JWT_ALGORITHMS: HS/,
    ],
    ['no algorithm', { ...WHO, ...KEYS, JWT_ALGORITHMS: 'none' }, /^JWT_ALGORITHMS: none is/],
    [
      'an algorithm beside a secret',
      { ...WHO, JWT_SECRET: SECRET, JWT_ALGORITHMS: 'HS256' },
      /^JWT_ALGORITHMS: only with JWT_JWKS_URL/,
    ],
  ])('is refused: %s', (_, env, said) => {
    expect(() => readConfig(env)).toThrow(
      expect.objectContaining({ name: 'BadConfig', message: expect.stringMatching(said) }),
    );
  });

  it('is reported without its secrets', () => {
    for (const [name, value] of [
      ['JWT_SECRET', 'a short secret'],
      ['JWT_JWKS_URL', 'https://user:a-password@h/keys'],
    ] as const)
      try {
        expect(readConfig({ ...WHO, [name]: value })).toBeNull();
      } catch (error) {
        expect(String(error)).toMatch(name);
        expect(String(error)).not.toMatch(/short secret|a-password/);
      }
  });
});

it('a start with an invalid configuration ends in one line that names the variable', async () => {
  const outcome = await failToStart({ JWT_SECRET: SECRET });
  expect(outcome).toMatchObject({ code: 1, left: [] });
  expect(outcome.said).toBe('JWT_ISSUER: needed beside JWT_SECRET\n(--help lists all variables)\n');
});
