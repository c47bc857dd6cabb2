import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { readConfig, variables } from '#src/kernel/config/config.ts';
import { makeCertificate } from '#test/support/servers/certificates.ts';
import { NATS, SERIOUS, STRONG, table } from '#test/support/wrong-values.ts';

/**
 * Every variable, with each kind of invalid value. A start reads the variables first, so the error
 * thrown here is the one that the operator sees (test/e2e has starts that are refused later).
 */

const rows = Object.entries(table).flatMap(([name, wrong]) =>
  wrong.map(([value, reason, beside = {}]) => ({ name, value, reason, beside })),
);

let folder = '';
/** The placeholder in the rows for files that a test creates. */
const files: Record<string, string> = {};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bss-config-'));
  const ours = await makeCertificate(folder, 'ours');
  const other = await makeCertificate(folder, 'other');
  const texts = { GARBAGE: 'no such thing\n', EMPTY: ' \n', STRONG: `${STRONG}\n` };
  for (const [name, text] of Object.entries(texts)) {
    files[name] = join(folder, name);
    await writeFile(files[name], text);
  }
  Object.assign(files, { CERT: ours.cert, KEY: ours.key, OTHER_KEY: other.key });
});
afterAll(() => rm(folder, { recursive: true }));

function withFiles(env: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [
      name,
      name.endsWith('_FILE') ? (files[value] ?? value) : value,
    ]),
  );
}

describe('a configuration in which', () => {
  it.each(rows)('$name is "$value" beside $beside is refused', ({ name, value, ...row }) => {
    const read = () => readConfig(withFiles({ ...row.beside, [name]: value }));
    expect(read).toThrow(row.reason);
    // The name comes first; where it is a secret in a file, or a pair, that of the other half may.
    expect(read).toThrow(new RegExp(`^(${name}|${name.replace(/_USER$/, '_PASSWORD')})\\b`));
    expect(read).not.toThrow(/hunter2/);
  });
});

test('every variable has a row', () => {
  expect(Object.keys(table).toSorted()).toEqual(Object.keys(variables).toSorted());
});

test('a secret may come from a file or from the environment', () => {
  const env = {
    ...NATS,
    MASTER_KEY_FILE: 'STRONG',
    NATS_USER: 'api',
    NATS_PASSWORD_FILE: 'STRONG',
    REDIS_URL: 'redis://127.0.0.1/1',
    REDIS_PASSWORD_FILE: 'STRONG',
  };
  expect(readConfig(withFiles(env))).toMatchObject({
    masterKey: STRONG,
    natsUrl: `nats://api:${STRONG}@127.0.0.1:4222`,
    redisUrl: `redis://:${STRONG}@127.0.0.1/1`,
  });
});

test('all servers of a cluster get the same URL-encoded user', () => {
  const env = {
    NATS_URL: 'tls://n1:4222, tls://n2',
    NATS_USER: 'api',
    NATS_PASSWORD: 'p@s:s/1x,Q',
  };
  expect(readConfig(env).natsUrl).toBe(
    'tls://api:p%40s%3As%2F1x%2CQ@n1:4222,tls://api:p%40s%3As%2F1x%2CQ@n2',
  );
});

test('random secrets are strong, and weak ones are allowed in development', () => {
  for (const MASTER_KEY of [STRONG, 'f3a9c1d47be02865f3a1c9d4b7e08256'])
    expect(readConfig({ ...SERIOUS, MASTER_KEY }).masterKey).toBe(MASTER_KEY);
  expect(readConfig({ ...NATS, MASTER_KEY: 'x'.repeat(32) }).masterKey).toBe('x'.repeat(32));
});

describe('browsers that are not isolated', () => {
  const unisolated = (env: Record<string, string>) => readConfig(env).browsers.unisolated;
  const PRODUCTION = { NODE_ENV: 'production' };
  test.each([
    ['development', {}],
    ['development', { HOST: '::1' }],
    ['refused', PRODUCTION],
    ['refused', { HOST: '0.0.0.0' }],
    ['refused', { HOST: '192.168.1.7' }],
    ['refused', { NATS_URL: 'nats://10.0.0.1:4222', ROLES: 'provisioner' }],
    ['allowed', { ...PRODUCTION, ALLOW_UNISOLATED: 'yes' }],
    ['refused', { ...PRODUCTION, ALLOW_UNISOLATED: 'no' }],
    [null, { ...PRODUCTION, BROWSERS: 'docker' }],
    [null, { ...PRODUCTION, BROWSERS: 'simulated' }],
    [null, { ...PRODUCTION, ROLES: 'api,gateway' }],
  ])('are %s with %j', (expected, env) => {
    expect(unisolated(env)).toBe(expected);
  });
});
