import { afterAll, beforeAll, expect, test } from 'vitest';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';

/** NATS or Redis is killed or hangs while the service runs. */

const SHOWN_WITHIN_MS = 5_000;
/** As long as an embedded part may take to be restarted. */
const WHOLE_WITHIN_MS = 15_000;

let nats: RealNats;
let redis: RealRedis;
let service: RunningService;
beforeAll(async () => {
  [nats, redis] = await Promise.all([startNats(), startRedis()]);
  service = await startService({
    MASTER_KEY: 'of-a-service-beside-servers-of-its-operator',
    NATS_URL: nats.url,
    REDIS_URL: redis.url,
  });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await redis?.[Symbol.asyncDispose]();
  await nats?.[Symbol.asyncDispose]();
});

async function health(): Promise<string> {
  return (await service.request('GET', '/api/health')).body.status;
}

test.each<[string, string, { goes: () => unknown; comes: () => unknown }]>([
  ['NATS, killed', 'unhealthy', { goes: () => nats.kill(), comes: () => nats.restart() }],
  ['NATS, which hangs', 'unhealthy', { goes: () => nats.hang(), comes: () => nats.resume() }],
  ['Redis, killed', 'degraded', { goes: () => redis.kill(), comes: () => redis.restart() }],
  ['Redis, which hangs', 'degraded', { goes: () => redis.hang(), comes: () => redis.resume() }],
])('%s, shows in health within 5 s, and the service recovers by itself', async (_, word, part) => {
  await eventually(
    async () => (await health()) === 'healthy',
    'health is healthy',
    WHOLE_WITHIN_MS,
  );
  await part.goes();
  await eventually(async () => (await health()) === word, 'health shows it', SHOWN_WITHIN_MS);
  await part.comes();
  await eventually(
    async () => (await health()) === 'healthy',
    'health is healthy',
    WHOLE_WITHIN_MS,
  );
  const { status, body } = await service.request('POST', '/api/sessions', { duration: '30m' });
  expect([status, body.status]).toEqual([201, 'active']);
  expect((await service.request('DELETE', `/api/sessions/${body.id}`)).status).toBe(200);
});
