import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { Runtime } from '#src/embedded/runtime-file.ts';
import { eventually } from '../service.ts';
import { failToStart, startMain } from './main-process.ts';

vi.setConfig({ testTimeout: 60_000 });

const MASTER_KEY = 'x'.repeat(32);
/** Nobody listens on port 1. */
const NATS_AWAY = { NATS_URL: 'nats://127.0.0.1:1', MASTER_KEY };
const REDIS_AWAY = { REDIS_URL: 'redis://127.0.0.1:1' };

describe.concurrent('a start beside a server that is not there', () => {
  test.each([
    ['NATS_URL', NATS_AWAY, /^ServerAway: NATS_URL: no connection to NATS at 127\.0\.0\.1:1\b.*$/m],
    [
      'REDIS_URL',
      REDIS_AWAY,
      /^ServerAway: REDIS_URL: no connection to Redis at .*ECONNREFUSED.*$/m,
    ],
  ])('ends within 15 s in one line that names %s', async (_, env, line) => {
    const outcome = await failToStart(env);
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toMatch(line);
    expect(outcome.said).not.toMatch(/^ +at /m);
  });

  test('ends without a stack where the server at NATS_URL is something else', async () => {
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
    ['event log', NATS_AWAY],
    ['read model', REDIS_AWAY],
  ])('ends well and at once when it is asked to while it waits for the %s', async (part, env) => {
    await using main = await startMain(env);
    const line = `"part":"${part}","msg":"waiting for it"`;
    await eventually(() => main.said().includes(line), 'it says what it waits for');
    const askedAt = performance.now();
    expect(await main.end()).toBe(0);
    expect(performance.now() - askedAt).toBeLessThan(5_000);
    expect(main.processes()).toEqual([]);
  });
});

test('an API says that it is ready when a server for browsers has joined, not before', async () => {
  await using api = await startMain({ ROLES: 'api,projector,gateway,timekeeper', MASTER_KEY });
  const ask = () => fetch(`http://127.0.0.1:${api.env['PORT']}/api/ready`).catch(() => null);
  const unready = await eventually(ask, 'the API answers');
  expect(await unready.json()).toMatchObject({ context: { waiting_for: ['browser server'] } });
  const file = join(api.dataDir, 'runtime.json');
  const written = () => readFile(file, 'utf8').catch(() => null);
  const text = await eventually(written, 'it has said where its parts are');
  const { nats_url, redis_url } = JSON.parse(text) as Runtime;
  const shared = { MASTER_KEY, NATS_URL: nats_url, REDIS_URL: redis_url };
  expect(api.said()).not.toContain('"msg":"ready"');
  await using provisioner = await startMain({ ROLES: 'provisioner', ...shared });
  await eventually(() => api.said().includes('"msg":"ready"'), 'the API is ready');
  expect((await ask())?.status).toBe(200);
  expect(await provisioner.end()).toBe(0);
});
