import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { openStream } from '#test/support/clients/sse-client.ts';
import { json } from '#test/support/clients/command-line.ts';
import { failToStart, startMain } from '#test/support/service/main-process.ts';

const MASTER_KEY = 'x'.repeat(32);
/** No process listens on port 1. */
const NATS_AWAY = { NATS_URL: 'nats://127.0.0.1:1', MASTER_KEY };
const REDIS_AWAY = { REDIS_URL: 'redis://127.0.0.1:1' };

describe.concurrent('a start without NATS or Redis', () => {
  test.each([
    ['NATS_URL', NATS_AWAY, /^ServerAway: NATS_URL: no connection to NATS at 127\.0\.0\.1:1\b.*$/m],
    [
      'REDIS_URL',
      REDIS_AWAY,
      /^ServerAway: REDIS_URL: no connection to Redis at .*ECONNREFUSED.*$/m,
    ],
  ])('fails with one line that names %s', async (_, env, line) => {
    const outcome = await failToStart(env);
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toMatch(line);
    expect(outcome.said).not.toMatch(/^ +at /m);
  });

  test('fails without a stack trace if the server at NATS_URL is not NATS', async () => {
    const other = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const outcome = await failToStart({ MASTER_KEY, NATS_URL: `nats://127.0.0.1:${port}` });
    other.close();
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toMatch(/^ServerAway: NATS_URL: /m);
    expect(outcome.said).not.toMatch(/^ +at /m);
  });

  test.each([
    ['event store', NATS_AWAY],
    ['read model', REDIS_AWAY],
  ])('exits with 0 on SIGTERM while it waits for the %s', async (part, env) => {
    await using main = await startMain(env);
    const line = `"part":"${part}","msg":"waiting for ${part}"`;
    await eventually(() => main.output().includes(line), 'it logs what it waits for');
    expect(await main.end()).toBe(0);
    expect(main.output()).not.toContain('ServerAway');
    expect(main.processes()).toEqual([]);
  });
});

test('an API is ready without a server for browsers; its health shows that', async () => {
  await using api = await startService({ ROLES: 'api,projector,gateway,timekeeper', MASTER_KEY });
  expect(await fleetSeenBy(api)).toEqual({ ready: 200, autoscaler: 'unhealthy' });
  const refused = await api.request('POST', '/api/sessions');
  expect([refused.status, refused.body.error]).toEqual([503, 'NO_SERVERS_AVAILABLE']);
  expect((await api.request('GET', '/api/sessions')).body).toMatchObject({
    sessions: [],
    total: 0,
  });

  const { nats_url, redis_url } = api.runtime;
  const shared = { MASTER_KEY, NATS_URL: nats_url, REDIS_URL: redis_url };
  await using provisioner = await startService({ ROLES: 'provisioner', ...shared });
  await eventually(
    async () => (await fleetSeenBy(api)).autoscaler === 'healthy',
    'the server has joined',
  );
  const { status, body } = await api.request('POST', '/api/sessions', { duration: '30m' });
  expect([status, body.status]).toEqual([201, 'active']);

  // The last server gets no new session; its session goes on and can still be read and changed.
  await json(api, 'servers', 'drain', body.autoscaler_server_id);
  await eventually(
    async () => (await fleetSeenBy(api)).autoscaler === 'unhealthy',
    'the server is seen to drain',
  );
  expect(await fleetSeenBy(api)).toEqual({ ready: 200, autoscaler: 'unhealthy' });
  const path = `/api/sessions/${body.id}`;
  expect((await api.request('GET', path)).body.status).toBe('active');
  expect((await api.request('GET', '/api/sessions')).body.total).toBe(1);
  using history = await openStream(`${api.apiUrl}${path}/events`);
  await eventually(
    () => history.events().some(({ type }) => type.endsWith('session.activated')),
    'its history is printed',
  );
  expect((await api.request('POST', `${path}/extend`, { duration: '5m' })).status).toBe(200);
  expect((await api.request('DELETE', path)).status).toBe(200);
  await eventually(
    async () => (await api.request('GET', path)).body.status === 'stopped',
    'it has stopped',
  );
  expect(await provisioner.end('SIGTERM')).toBe(0);
  expect(await fleetSeenBy(api)).toEqual({ ready: 200, autoscaler: 'unhealthy' });
});

async function fleetSeenBy(api: RunningService) {
  const [ready, health] = await Promise.all([
    api.request('GET', '/api/ready'),
    api.request('GET', '/api/health'),
  ]);
  return { ready: ready.status, autoscaler: health.body.dependencies.autoscaler as string };
}
