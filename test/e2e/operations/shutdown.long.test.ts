import { expect, test } from 'vitest';
import { newAccountSeed } from '#src/features/nats-tenants/nkey.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { startRedis } from '#test/support/servers/real-redis.ts';
import { startService } from '#test/support/service/service.ts';

/** What a shutdown that does not end has without the variable. */
const DEFAULT_MS = 9_500;

test('a shutdown for which NATS does not answer is given up after SHUTDOWN_WITHIN', async () => {
  await using nats = await startNats();
  await using redis = await startRedis();
  const env = {
    NATS_URL: nats.url,
    REDIS_URL: redis.url,
    MASTER_KEY: 'of-a-service-that-does-not-end-itself',
    NATS_ISSUER_SEED: newAccountSeed(),
    SHUTDOWN_WITHIN: '1s',
  };
  await using service = await startService(env, { mayFail: true });
  nats.hang();
  const begunAt = performance.now();
  expect(await service.end('SIGTERM')).toBe(1);
  expect(performance.now() - begunAt).toBeLessThan(DEFAULT_MS);
  nats.resume();
});
