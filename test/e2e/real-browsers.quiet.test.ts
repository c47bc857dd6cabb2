import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createWarm,
  openCdp,
  reaches,
  startRealService,
  tracesOf,
  type RealService,
} from '#test/support/service/real-session.ts';

/** Times that the service promises of real browsers, and warm creates one after the other. */

/** The specification's bound for a session whose browser has died. */
const PROMISED_MS = 2_000;
const TIMES = 10;

let service: RealService;
beforeAll(async () => {
  service = await startRealService({ POOL_MIN_IDLE: '2', POOL_MAX_IDLE: '2', POOL_MAX: '6' });
});
afterAll(() => service?.[Symbol.asyncDispose]());

test(`a warm create answers active, and its browser answers the first command, ${TIMES} times in a row`, async () => {
  for (let time = 1; time <= TIMES; time += 1) {
    const session = await createWarm(service);
    const driver = await openCdp(session.cdp_url);
    expect(driver.reply).toMatchObject({ id: 1, result: { product: expect.any(String) } });
    const stopped = await service.request('DELETE', `/api/sessions/${session.id}`);
    expect(stopped.status).toBe(200);
    await driver.closed;
  }
});

test('a session whose browser is killed fails within 2 s', async () => {
  const session = await createWarm(service);
  const { chromium } = tracesOf(service, session.autoscaler_workload_id);
  const killedAt = Date.now();
  process.kill(chromium, 'SIGKILL');
  const { ended_at } = await reaches(service, session.id, 'failed');
  expect(Date.parse(ended_at ?? '') - killedAt).toBeLessThan(PROMISED_MS);
});

test('SIGTERM ends the service with a session in use within 10 s', async () => {
  const driver = await openCdp((await createWarm(service)).cdp_url);
  const askedAt = performance.now();
  expect(await service.end('SIGTERM')).toBe(0);
  expect(performance.now() - askedAt).toBeLessThan(10_000);
  await driver.closed;
});
