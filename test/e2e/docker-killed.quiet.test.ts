import { expect, test } from 'vitest';
import { docker, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { createWarm, reaches } from '#test/support/service/real-session.ts';
import { eventually, startService } from '#test/support/service/service.ts';

/** The specification's bound for a session whose browser has died. */
const PROMISED_MS = 2_000;

test.runIf(hasDocker())('a session whose container is killed fails within 2 s', async () => {
  await using service = await startService({
    BROWSERS: 'docker',
    DOCKER_NETWORK: testNetwork(),
    POOL_MIN_IDLE: '1',
    TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000 } }),
  });
  const { id } = await createWarm(service);
  const find = () => docker('ps', '-q', '--filter', `name=\\.${id}$`);
  const container = await eventually(() => find() || null, `a container has the name of ${id}`);
  docker('kill', container);
  const killedAt = Date.now();
  const { ended_at } = await reaches(service, id, 'failed');
  expect(Date.parse(ended_at ?? '') - killedAt).toBeLessThan(PROMISED_MS);
});
