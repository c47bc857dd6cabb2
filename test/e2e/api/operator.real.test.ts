import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { scratchDir } from '#test/support/scratch.ts';
import { makeCertificate } from '#test/support/servers/certificates.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { connectApi, type ApiClient } from '#test/support/clients/api-client.ts';
import { DEV_KEY, eventually, startService } from '#test/support/service/service.ts';
import type { RunningService } from '#test/support/service/service.ts';

/** The operator's API of a running service: one browser, so that sessions wait. */

const TOKEN = 'operator-4711-token-of-the-tests';

let service: RunningService;
let operator: ApiClient;
let organization: ApiClient;

beforeAll(async () => {
  service = await startService({
    OPERATOR_TOKEN: TOKEN,
    POOL_MAX: '1',
    POOL_MIN_IDLE: '1',
    CREATE_WAIT: '200ms',
    QUEUE_AFTER: '100ms',
  });
  organization = await connectApi(service.apiUrl);
  operator = organization.as(TOKEN);
});
afterAll(() => service?.[Symbol.asyncDispose]());

const PATHS = [
  '/api/operator',
  '/api/operator/organizations',
  '/api/operator/servers',
  '/api/operator/pool',
  '/api/operator/pool/decisions',
  '/api/operator/queue',
  '/api/operator/read-models',
  '/api/operator/dead-letters',
  '/api/operator/audits',
];

describe.each(PATHS)('%s', (path) => {
  it('answers the operator', async () => {
    expect((await operator.get(path)).status).toBe(200);
  });

  it('refuses an organization’s key, another token and none', async () => {
    for (const key of [DEV_KEY, `${TOKEN}x`, null])
      expect((await operator.as(key).get(path)).status).toBe(401);
  });
});

test('the token is no credential of an organization', async () => {
  expect((await operator.get('/api/sessions')).status).toBe(401);
});

test('operator and organization see who waits and why', async () => {
  const first = await organization.create({ session_name: 'first' });
  expect(first.status).toBe(201);
  const waiting = [];
  for (let n = 0; n < 2; n += 1) waiting.push((await organization.create()).body.id);
  const shows = async () => (await operator.get('/api/operator/queue')).body.total === 2;
  await eventually(shows, 'both wait');
  const { body } = await operator.get('/api/operator/queue');
  expect(body.waiting).toMatchObject([
    { session_id: waiting[0], organization_id: 'dev', position: 1 },
    { session_id: waiting[1], organization_id: 'dev', position: 2 },
  ]);
  expect(body.waiting[0].why).toBe('All servers are full: 1 of 1 browsers run.');
  expect(body.waiting[1].why).toContain('1 session waits before it.');
  // Times and estimates change with each second of the clock.
  await expect
    .poll(async () => {
      const [all, own] = await Promise.all([
        operator.get('/api/operator/queue'),
        organization.get('/api/queue'),
      ]);
      return own.body.total === 2 && isDeepStrictEqual(own.body, all.body);
    })
    .toBe(true);
  const { body: series } = await organization.get('/api/pool?step=30');
  expect(series.points.at(-1)).toMatchObject({ total: 1, busy: 1, waiting: 2 });
  for (const id of [first.body.id, ...waiting]) await organization.stop(id);
  const isEmpty = async () => (await organization.get('/api/queue')).body.total === 0;
  await eventually(isEmpty, 'the queue is empty');
});

test('a read model is rebuilt in the background', async () => {
  const begun = await operator.send('POST', '/api/operator/read-models/session-view/rebuild');
  expect(begun.status).toBe(202);
  const rebuilt = async () =>
    (await operator.get('/api/operator/read-models')).body.rebuild.state !== 'running';
  await eventually(rebuilt, 'the rebuild has ended');
  const { body } = await operator.get('/api/operator/read-models');
  expect(body.rebuild).toMatchObject({ name: 'session-view', state: 'done', failure: null });
  for (const { name, status } of body.read_models) expect([name, status]).toEqual([name, 'in use']);
  expect((await organization.get('/api/sessions')).body.total).toBe(3);
});

test('an audit says what `bss audit ledger` says', async () => {
  expect((await operator.send('POST', '/api/operator/audits')).status).toBe(202);
  const audited = async () =>
    (await operator.get('/api/operator/audits')).body.ledgers.state !== 'running';
  await eventually(audited, 'the audit has ended');
  const { ledgers } = (await operator.get('/api/operator/audits')).body;
  expect(ledgers).toMatchObject({ state: 'done', result: { agrees: true, unreadable: 0 } });
});

test('a drained server takes no session, and the queue says so', async () => {
  const { body } = await operator.get('/api/operator/servers');
  expect(body.servers).toMatchObject([{ status: 'live', pool_max: 1 }]);
  const [{ id }] = body.servers;
  const drained = await operator.send('POST', `/api/operator/servers/${id}/drain`);
  expect([drained.status, drained.body.id]).toEqual([200, id]);
  const gone = await operator.send('POST', '/api/operator/servers/srv_none/drain');
  expect(gone.status).toBe(404);
  const isRefused = async () => (await organization.create()).body.error === 'NO_SERVERS_AVAILABLE';
  await eventually(isRefused, 'no server takes sessions');
  const back = await operator.send('POST', `/api/operator/servers/${id}/undrain`);
  expect(back.body).toEqual({ id, status: 'live' });
});

test('a dead letter that is none is 404, to retry and to skip', async () => {
  const path = '/api/operator/dead-letters/1.none:v1';
  expect((await operator.send('POST', `${path}/retry`)).status).toBe(404);
  const body = { reason: 'a test' };
  expect((await operator.send('POST', `${path}/skip`, { body })).status).toBe(404);
});

test('a start with everything embedded makes a token and keeps it for its owner', async () => {
  await using other = await startService();
  const path = join(other.dataDir, 'operator-token');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const made = (await readFile(path, 'utf8')).trim();
  const client = await connectApi(other.apiUrl);
  expect((await client.as(made).get('/api/operator')).body).toEqual({ operator: true });
});

describe.each([{}, { tls: true }])('with OPERATOR_PORT, %j', ({ tls = false }) => {
  test('operators’ paths are there, and at PORT as if there were none', async () => {
    await using folder = await scratchDir();
    const { cert, key } = await makeCertificate(folder.path, 'api');
    const [operatorPort = 0] = await freePorts(1);
    await using apart = await startService({
      OPERATOR_TOKEN: TOKEN,
      OPERATOR_PORT: `${operatorPort}`,
      ...(tls ? { TLS_CERT_FILE: cert, TLS_KEY_FILE: key } : {}),
    });
    const ca = await readFile(cert, 'utf8');
    const ask = (port: number | string, path: string, method = 'GET') =>
      new Promise<[number | undefined, string]>((resolve, reject) => {
        const headers = { authorization: `Bearer ${TOKEN}` };
        const options = { host: '127.0.0.1', port, path, method, headers, ca };
        const sent = (tls ? httpsRequest : httpRequest)(options, (answer) => {
          void text(answer).then((body) => resolve([answer.statusCode, body]), reject);
        });
        sent.once('error', reject).end();
      });
    const { port } = new URL(apart.apiUrl);
    expect(await ask(operatorPort, '/api/operator')).toEqual([200, '{"operator":true}']);
    expect((await ask(operatorPort, '/api/health'))[0]).toBe(200);
    expect((await ask(port, '/api/health'))[0]).toBe(200);
    for (const [method, path] of [
      ['GET', '/api/operator'],
      ['GET', '/api/operator/servers'],
      ['POST', '/api/operator/audits'],
      ['DELETE', '/api/operator/audits'],
    ] as const) {
      const [status, body] = await ask(port, path, method);
      expect([path, status]).toEqual([path, 404]);
      expect(body).toContain('NOT_FOUND');
    }
  });
});
