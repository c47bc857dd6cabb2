import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { makeCertificate, type CertificateFiles } from '#test/support/servers/certificates.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';
import { startSecureRedis } from '#test/support/servers/real-redis.ts';
import { DEV_KEY, startService } from '#test/support/service/service.ts';
import { bssWith } from '#test/support/clients/command-line.ts';
import { failToStart } from '#test/support/service/main-process.ts';

/** The whole service with TLS on every side, and its secrets in files. */

const PASSWORD = 'hunter2hunter2hunter2';
/** The start waits some ten seconds for a server; the rest is for a busy machine. */
const ENDS_WITHIN_MS = 120_000;
const MASTER_KEY = 'tGm4Zk0vQe8RzjU1c7LwXb5HfAy2NpDs9KiJ';

let folder = '';
let inside: CertificateFiles;
let outside: CertificateFiles;
let nats: RealNats;
let redis: Awaited<ReturnType<typeof startSecureRedis>>;
/** The environment of a start. */
let env: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bss-secure-'));
  inside = await makeCertificate(folder, 'inside');
  outside = await makeCertificate(folder, 'outside');
  nats = await startNats(`
    authorization { users: [{ user: service, password: "${PASSWORD}" }] }
    tls { cert_file: "${inside.cert}", key_file: "${inside.key}", timeout: 5 }`);
  redis = await startSecureRedis(inside, { user: 'bss', password: PASSWORD });
  const [password, masterKey] = [join(folder, 'password'), join(folder, 'master-key')];
  await writeFile(password, `${PASSWORD}\n`);
  await writeFile(masterKey, `${MASTER_KEY}\n`);
  env = {
    NATS_URL: `tls://127.0.0.1:${nats.port}`,
    NATS_USER: 'service',
    NATS_PASSWORD_FILE: password,
    NATS_CA_FILE: inside.cert,
    REDIS_URL: `rediss://127.0.0.1:${redis.port}`,
    REDIS_USER: 'bss',
    REDIS_PASSWORD_FILE: password,
    REDIS_CA_FILE: inside.cert,
    MASTER_KEY_FILE: masterKey,
  };
});
afterAll(async () => {
  await redis?.[Symbol.asyncDispose]();
  await nats?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** A request by a client that trusts the service's certificate. */
async function ask(url: string, method: string, body = ''): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${DEV_KEY}`, 'content-type': 'application/json' };
  const ca = await readFile(outside.cert);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const asked = request(url, { method, ca, headers }, (response) => {
    let said = '';
    response.setEncoding('utf8').on('data', (text: string) => (said += text));
    response.on('end', () => resolve(said));
  });
  asked.on('error', reject).end(body);
  return JSON.parse(await promise) as Record<string, string>;
}

test('a session is created, driven and stopped, and no password is logged', async () => {
  const tls = { TLS_CERT_FILE: outside.cert, TLS_KEY_FILE: outside.key };
  await using service = await startService({ ...env, ...tls, LOG_LEVEL: 'trace' });
  const { api_url: api, gateway_ws_url, gateway_wss_url } = service.runtime;
  expect(api).toMatch(/^https:/);
  expect(gateway_ws_url).toBe(gateway_wss_url);
  const created = await ask(`${api}/api/sessions`, 'POST', '{"duration":"30m"}');
  expect(created).toMatchObject({ status: 'active' });
  const { id, cdp_url = '' } = created;
  expect(cdp_url).toMatch(/^wss:/);
  const socket = new WebSocket(cdp_url, { ca: await readFile(outside.cert) });
  const { promise: answer, resolve, reject } = Promise.withResolvers<string>();
  socket.once('error', reject);
  socket.once('open', () => socket.send('{"id":1,"method":"Browser.getVersion"}'));
  socket.once('message', (data: Buffer) => resolve(data.toString()));
  expect(await answer).toContain('"product"');
  socket.terminate();
  expect(await ask(`${api}/api/sessions/${id}`, 'DELETE')).toMatchObject({ session_id: id });

  const listed = await bssWith(env, 'projections', 'list');
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  for (const said of [service.output(), listed.stdout])
    for (const secret of [PASSWORD, MASTER_KEY]) expect(said).not.toContain(secret);
});

describe.concurrent('a start is refused in a line that names the variable where', () => {
  const elsewhere = 'tls://127.0.0.1:1';
  test.each<[what: string, wrong: () => Record<string, string>, said: RegExp]>([
    ['NATS is not there', () => ({ NATS_URL: elsewhere }), /NATS_URL: no connection .*:1: /],
    [
      'NATS is a stranger',
      () => ({ NATS_CA_FILE: outside.cert }),
      /NATS_URL: .*(self-signed|time)/,
    ],
    ['the user is not known', () => ({ NATS_USER: 'x' }), /NATS_URL: .*[Aa]uthorization/],
    ['Redis is not there', () => ({ REDIS_URL: 'rediss://127.0.0.1:1' }), /REDIS_URL: no conn/],
    [
      'Redis is a stranger',
      () => ({ REDIS_CA_FILE: outside.cert }),
      /REDIS_URL: .*(self-signed|time)/i,
    ],
    ['Redis knows no such user', () => ({ REDIS_USER: 'x' }), /REDIS_URL: .*(WRONGPASS|time)/i],
    ['the key is gone', () => ({ MASTER_KEY_FILE: '/nowhere' }), /MASTER_KEY_FILE: .*ENOENT/],
    ['there is no key', () => ({ MASTER_KEY_FILE: '' }), /MASTER_KEY: needed beside NATS_URL/],
    ['the address is another’s', () => ({ HOST: '192.0.2.1' }), /PORT: 192\.0\.2\.1.*cannot be/],
    ['the folder is a file', () => ({ DATA_DIR: '/dev/null' }), /DATA_DIR \/dev\/null cannot be/],
  ])('%s', async (_, wrong, said) => {
    const outcome = await failToStart({ ...env, ...wrong() }, [], ENDS_WITHIN_MS);
    expect(outcome).toMatchObject({ code: 1, left: [] });
    const last = outcome.said.split('\n').filter((line) => !line.startsWith('{'));
    expect(last.join('\n')).toMatch(said);
    expect(outcome.said).not.toMatch(/^ +at /m);
    for (const secret of [PASSWORD, MASTER_KEY]) expect(outcome.said).not.toContain(secret);
  });
});
