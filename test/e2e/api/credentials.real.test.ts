import { createHmac } from 'node:crypto';
import { exportSPKI, type JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { filters } from '#events/subjects.ts';
import type { OpenApiDocument } from '#src/roles/api/docs/openapi-document.ts';
import {
  AUDIENCE,
  forge,
  goodClaims,
  ISSUER,
  newSigner,
  startKeySetServer,
} from '#test/support/servers/key-set-server.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { connectApi, errorOf, type ApiClient } from '#test/support/clients/api-client.ts';
import { startTwoApis } from '#test/support/service/two-processes.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

/**
 * Authentication by API keys, and by JWTs of a shared secret (one process) or a key set (the
 * other).
 */

const SECRET = 'a-secret-of-the-issuer-0123456789abcdef';
const PLENTY = { requests_per_minute: 1_000_000 };
const signer = await newSigner('RS256', 'rsa-1');

let issuer: Awaited<ReturnType<typeof startKeySetServer>>;
let apis: Awaited<ReturnType<typeof startTwoApis>>;
let log: ServiceLog;
/**
 * Clients without a credential: of the process with the secret, and of the process with the key
 * set.
 */
let bySecret: ApiClient;
let byKeySet: ApiClient;
/** Every operation that needs a credential, with an unknown id in its path. */
let routes: { method: string; path: string }[];

beforeAll(async () => {
  issuer = await startKeySetServer();
  issuer.state.keys = [signer.jwk];
  const who = { JWT_ISSUER: ISSUER, JWT_AUDIENCE: AUDIENCE };
  apis = await startTwoApis(
    {
      TIERS: JSON.stringify({ free: PLENTY, max: PLENTY }),
      OPERATOR_TOKEN: 'operator-4711-token-of-the-tests',
      ...who,
    },
    { first: { JWT_SECRET: SECRET }, second: { JWT_JWKS_URL: issuer.url } },
  );
  bySecret = (await connectApi(apis.first.apiUrl)).as(null);
  byKeySet = (await connectApi(apis.second.apiUrl)).as(null);
  log = await openLog(apis.first);
  const document = (await bySecret.get('/api/openapi.json')).body as OpenApiDocument;
  routes = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { security }]) => security.length > 0)
      .map(([method]) => ({
        method: method.toUpperCase(),
        path: path.replaceAll(/\{\w+\}/g, 'id_AAAAAAAAAAAAAAAAAAAAAA'),
      })),
  );
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  await apis?.[Symbol.asyncDispose]();
  await issuer?.[Symbol.asyncDispose]();
});

const dev = (more = {}) => goodClaims({ org_id: 'dev', ...more });
const seconds = () => Math.floor(Date.now() / 1000);
const hs256 = (secret: string, claims: JWTPayload, header: object = {}) =>
  forge({ alg: 'HS256', ...header }, claims, (signed) =>
    createHmac('sha256', secret).update(signed).digest('base64url'),
  );

/** One route that writes, one that reads, one of the operator: all routes have the same guard. */
const sampleRoutes = [
  { method: 'POST', path: '/api/sessions' },
  { method: 'GET', path: '/api/status' },
  { method: 'GET', path: '/api/operator/organizations' },
];

/** The routes refuse the credential with the same bytes, and with the headers of every answer. */
async function expectRefused(
  client: ApiClient,
  authorization: string | null,
  refusing = sampleRoutes,
): Promise<void> {
  const headers: Record<string, string> = authorization === null ? {} : { authorization };
  for (const { method, path } of refusing) {
    const { status, body, headers: got } = await client.send(method, path, { headers });
    expect([method, path, status]).toEqual([method, path, 401]);
    const message = 'A valid API key or token is required.';
    expect(body).toEqual({ error: 'UNAUTHORIZED', message, code: 401, context: {} });
    // The client itself checks two headers against the specification: limit and reset.
    expect(Number(got['x-ratelimit-remaining'])).toBeLessThan(PLENTY.requests_per_minute);
  }
  // A public route ignores an invalid credential.
  expect((await client.get('/api/health', { headers })).status).toBe(200);
}

describe('UNAUTHORIZED on every route is', () => {
  test.each<[string, string | null]>([
    ['no credential', null],
    ['a key that was never issued', 'Bearer bss_dev_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'],
    ['a JWT that is unsigned', `Bearer ${forge({ alg: 'none', typ: 'JWT' }, dev())}`],
  ])('%s', async (_, authorization) => {
    expect(routes.length).toBeGreaterThan(10);
    expect(routes).toEqual(expect.arrayContaining(sampleRoutes));
    await expectRefused(bySecret, authorization, routes);
    await expectRefused(byKeySet, authorization, routes);
  });
});

describe('UNAUTHORIZED is', () => {
  test.each<[string, string | null]>([
    ['an empty header', ''],
    ['a scheme alone', 'Bearer'],
    ['a scheme and spaces', 'Bearer     '],
    ['another scheme', `Basic ${Buffer.from(`dev:${DEV_KEY}`).toString('base64')}`],
    ['the key without a scheme', DEV_KEY],
    ['a key cut short', `Bearer ${DEV_KEY.slice(0, -1)}`],
    ['a key with more', `Bearer ${DEV_KEY}x`],
    ['two keys', `Bearer ${DEV_KEY} ${DEV_KEY}`],
    ['a key in another case', `Bearer ${DEV_KEY.toUpperCase()}`],
    ['garbage', 'Bearer %00\u00ff{}..."\'<>'],
    ['64 KiB', `Bearer ${'x'.repeat(65_536)}`],
    ['64 KiB of a JWT', `Bearer ${`${'x'.repeat(21_844)}.`.repeat(3)}x`],
  ])('%s', async (_, authorization) => {
    await expectRefused(bySecret, authorization);
    await expectRefused(byKeySet, authorization);
  });

  it('a key in the query or a cookie', async () => {
    const headers = { cookie: `authorization=${DEV_KEY}`, 'x-api-key': DEV_KEY };
    const path = `/api/sessions?api_key=${DEV_KEY}&access_token=${DEV_KEY}`;
    expect(errorOf(await bySecret.get(path, { headers }))).toBe('401 UNAUTHORIZED');
  });

  it('a revoked key', async () => {
    const key = await log.issueKey('dev', 'owner', bySecret);
    await log.revokeKey('dev', key);
    for (const client of [bySecret, byKeySet]) {
      const refused = async () => (await client.get('/api/status', { key })).status === 401;
      await eventually(refused, 'it is refused');
      await expectRefused(client, `Bearer ${key}`);
    }
  });
});

describe('UNAUTHORIZED, by a shared secret, is a JWT that', () => {
  test.each<[string, () => string]>([
    ['has expired', () => hs256(SECRET, dev({ exp: seconds() - 60 }))],
    ['is not yet valid', () => hs256(SECRET, dev({ nbf: seconds() + 60 }))],
    ['never expires', () => hs256(SECRET, dev({ exp: undefined }))],
    ['is unsigned: alg none', () => forge({ alg: 'none', typ: 'JWT' }, dev())],
    ['is signed with another secret', () => hs256(`${SECRET}x`, dev())],
    ['is by another issuer', () => hs256(SECRET, dev({ iss: 'https://evil.example' }))],
    ['is for another audience', () => hs256(SECRET, dev({ aud: 'mail' }))],
    ['is of no registered organization', () => hs256(SECRET, dev({ org_id: 'umbrella' }))],
    ['has an unknown role', () => hs256(SECRET, dev({ role: 'root' }))],
    ['is valid, but longer than 16 KiB', () => hs256(SECRET, dev({ x: 'x'.repeat(49_152) }))],
  ])('%s', async (_, token) => {
    await expectRefused(bySecret, `Bearer ${token()}`);
  });
});

describe('UNAUTHORIZED, by a key set, is a JWT that', () => {
  test.each<[string, () => Promise<string> | string]>([
    ['has expired', () => signer.sign(dev({ exp: seconds() - 60 }))],
    ['is not yet valid', () => signer.sign(dev({ nbf: seconds() + 60 }))],
    ['is unsigned: alg none', () => forge({ alg: 'none', kid: 'rsa-1' }, dev())],
    [
      'is signed with the public key as a secret: RS as HS',
      async () => hs256(await exportSPKI(signer.publicKey), dev(), { kid: 'rsa-1' }),
    ],
    ['is signed with the other process’s secret', () => hs256(SECRET, dev())],
    ['is by another issuer', () => signer.sign(dev({ iss: 'https://evil.example' }))],
    ['is for another audience', () => signer.sign(dev({ aud: 'mail' }))],
    ['has an unknown key id', () => signer.sign(dev(), { kid: 'rsa-2' })],
    [
      'has a known key id and another key',
      async () => (await newSigner('RS256', 'rsa-1')).sign(dev()),
    ],
    ['is of no registered organization', () => signer.sign(dev({ org_id: 'umbrella' }))],
  ])('%s', async (_, token) => {
    await expectRefused(byKeySet, `Bearer ${await token()}`);
  });
});

it('the scheme is taken in any case', async () => {
  const headers = { authorization: `bEARER ${DEV_KEY}` };
  expect((await bySecret.get('/api/status', { headers })).status).toBe(200);
});

describe('a valid JWT', () => {
  it('authenticates its user with its role, in each process by its own configuration', async () => {
    const cases = [
      [bySecret, (claims: JWTPayload) => hs256(SECRET, claims)],
      [byKeySet, signer.sign],
    ] as const;
    for (const [client, sign] of cases) {
      const member = client.as(await sign(dev({ sub: 'Grace 😀', role: 'member' })));
      const created = await member.create({ duration: '30m' });
      expect(created).toMatchObject({
        status: 201,
        body: { organization_id: 'dev', user_id: 'Grace 😀', organization_role: 'member' },
      });
      const last = await log.eventStore.readLast({
        kind: 'session',
        organizationId: 'dev',
        id: created.body.id,
      });
      expect(last?.state?.userId).toBe('Grace 😀');
      expect((await member.stop(created.body.id)).status).toBe(200);
      const viewer = client.as(await sign(dev({ role: 'viewer' })));
      expect((await viewer.get('/api/sessions')).status).toBe(200);
      expect(errorOf(await viewer.create())).toBe('403 FORBIDDEN');
    }
  });

  it('may name a user of 256 characters of any kind', async () => {
    for (const sub of ['機'.repeat(256), '😀'.repeat(128)]) {
      const { status, body } = await bySecret.as(hs256(SECRET, dev({ sub }))).create();
      expect([status, body.user_id]).toEqual([201, sub]);
      const session = { kind: 'session', organizationId: 'dev', id: body.id } as const;
      expect((await log.eventStore.readLast(session))?.state?.userId).toBe(sub);
      expect((await bySecret.as(DEV_KEY).stop(body.id)).status).toBe(200);
    }
  });

  it('that begins or ends within the clock skew of 30 s is accepted', async () => {
    for (const claims of [{ exp: seconds() - 10 }, { nbf: seconds() + 20 }]) {
      const key = hs256(SECRET, dev(claims));
      expect((await bySecret.get('/api/status', { key })).status).toBe(200);
    }
  });

  it('counts towards its organization’s rate limit', async () => {
    const client = bySecret.as(hs256(SECRET, dev()));
    const budget = async (one: ApiClient) => {
      const { headers } = await one.get('/api/status');
      const [left, until] = ['remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}`]);
      return { left: Number(left), until };
    };
    const counted = await eventually(async () => {
      const before = await budget(bySecret.as(DEV_KEY));
      const after = await budget(client);
      return before.until === after.until && { before, after };
    }, 'both are asked in one minute');
    expect(counted.after.left).toBe(counted.before.left - 1);
  });
});

it('refused requests append no event', async () => {
  await eventually(async () => {
    const { body } = await bySecret.get('/api/sessions', { key: DEV_KEY });
    return body.sessions?.every((one: { status: string }) => one.status === 'stopped') === true;
  }, 'what was accepted is over');
  const before = await lastOf(log.eventStore, [...filters.sessions, ...filters.organizations]);
  await expectRefused(bySecret, `Bearer ${hs256(`${SECRET}x`, dev())}`);
  await expectRefused(byKeySet, 'Bearer bss_dev_wrong');
  expect(await lastOf(log.eventStore, [...filters.sessions, ...filters.organizations])).toBe(
    before,
  );
  for (const { output } of [apis.first, apis.second]) {
    expect(output()).not.toContain('"msg":"unexpected error"');
    expect(output()).not.toContain(SECRET);
  }
});
