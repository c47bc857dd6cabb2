import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EAT, preferChromium } from '#test/support/browsers/out-of-memory.ts';
import { containerOf, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import {
  createWarm,
  onPage,
  reaches,
  startRealService,
  type RealService,
} from '#test/support/service/real-session.ts';

const MEMORY_MB = 400;

describe.runIf(hasDocker())('a session whose Docker browser runs out of memory', () => {
  let service: RealService;
  beforeAll(async () => {
    service = await startRealService({
      BROWSERS: 'docker',
      DOCKER_NETWORK: testNetwork(),
      BROWSER_MEMORY_MB: String(MEMORY_MB),
      POOL_MIN_IDLE: '1',
      POOL_MAX_IDLE: '1',
      POOL_MAX: '2',
    });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  test('fails, and its black box has the signal, all of its memory and the last page', async () => {
    const session = await createWarm(service);
    await preferChromium(containerOf(session.autoscaler_workload_id));
    const eating = onPage(session, async (page) => {
      await page.goto('data:text/html,<title>eats</title>');
      await page.evaluate(EAT);
    });
    // The socket may close before the answer.
    await eating.catch(() => undefined);
    const { ended_reason: reason } = await reaches(service, session.id, 'failed', 120_000);
    expect(reason).toBe('out_of_memory');
    const { body } = await service.request('GET', `/api/sessions/${session.id}/why`);
    expect(body.black_box).toMatchObject({
      out_of_memory: true,
      signal: 'SIGKILL',
      exit_code: 137,
      memory_peak_bytes: MEMORY_MB * 1024 ** 2,
      address: 'data:…',
      told: expect.arrayContaining([
        'the kernel had no memory left for it',
        `the browser used up to ${MEMORY_MB} MiB`,
      ]) as string[],
    });
  });
});
