import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { startDashboard, statusOf } from '#test/support/dashboard/dashboard.ts';
import { startFlakyTcpProxy } from '#test/support/servers/flaky-tcp-proxy.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { startRedis } from '#test/support/servers/real-redis.ts';
import { startSecondApi, MASTER_KEY } from '#test/support/service/two-processes.ts';
import { eventually, type Answer, type RunningService } from '#test/support/service/service.ts';

/** Parts of the service that go away while pages are open: each says so, and misses nothing. */

const says = (page: Page, text: RegExp) => page.getByRole('alert').filter({ hasText: text });
const isAsBefore = (page: Page) =>
  expect.poll(() => page.getByRole('alert').count(), { timeout: 60_000 }).toBe(0);

const extend = (service: RunningService, id: string) =>
  service.request('POST', `/api/sessions/${id}/extend`, { duration: '1m' });

/** Repeats a command until the service takes it. */
const insist = (ask: () => Promise<Answer>) =>
  eventually(async () => {
    const answer = await ask().catch(() => null);
    return answer !== null && answer.status < 300 ? answer : null;
  }, 'the service takes it');

/** The session's events by the API: its timeline must show each of them, and nothing twice. */
async function showsEveryEventOnce(page: Page, service: RunningService, id: string) {
  const missed = async () => {
    const { body } = await service.request('GET', `/api/sessions/${id}/history?limit=500`);
    const shown = await page.locator('.timeline li').evaluateAll(idsOf);
    const events = body.events as { sequence: number }[];
    const none = events.filter(({ sequence }) => !shown.includes(`event-${sequence}`));
    return { events: events.length > 0, none, twice: shown.length - new Set(shown).size };
  };
  await expect.poll(missed, { timeout: 60_000 }).toEqual({ events: true, none: [], twice: 0 });
}
const idsOf = (found: readonly unknown[]) => (found as { id: string }[]).map(({ id }) => id);

test('Redis killed with -9 and started again', async () => {
  await using redis = await startRedis();
  await using dashboard = await startDashboard({ REDIS_URL: redis.url });
  const { service } = dashboard;
  const before = await dashboard.create({ session_name: 'before' });
  await using list = await dashboard.open('/');
  await using one = await dashboard.open(`/sessions/${before.id}`);
  await statusOf(list.page, before.id, 'active').waitFor();

  await redis.kill();
  for (const { page } of [list, one])
    await says(page, /read model does not answer.*tries again by itself/).waitFor();
  const extended = await extend(service, before.id).catch(() => null);
  await redis.restart();
  if (extended?.status !== 200) await insist(() => extend(service, before.id));
  const after = await insist(() => service.request('POST', '/api/sessions', {}));
  for (const { page } of [list, one]) await isAsBefore(page);
  await statusOf(list.page, after.body.id, 'active').waitFor();
  await showsEveryEventOnce(one.page, service, before.id);
});

test('a page that is opened while Redis is away shows the list once it is back', async () => {
  await using redis = await startRedis();
  await using dashboard = await startDashboard({ REDIS_URL: redis.url });
  const { id } = await dashboard.create({ session_name: 'before' });
  await redis.kill();
  await using list = await dashboard.open('/');
  await says(list.page, /sessions could not be read/).waitFor();
  await redis.restart();
  await statusOf(list.page, id, 'active').waitFor();
  await isAsBefore(list.page);
});

test('NATS killed with -9 and started again', async () => {
  await using nats = await startNats();
  await using dashboard = await startDashboard({ NATS_URL: nats.url, MASTER_KEY });
  const { service } = dashboard;
  const before = await dashboard.create({ session_name: 'before' });
  await using list = await dashboard.open('/');
  await using one = await dashboard.open(`/sessions/${before.id}`);
  await statusOf(list.page, before.id, 'active').waitFor();

  await nats.kill();
  for (const { page } of [list, one])
    await says(page, /event store does not answer.*tries again by itself/).waitFor();
  await nats.restart();
  await insist(() => extend(service, before.id));
  const after = await insist(() => service.request('POST', '/api/sessions', {}));
  for (const { page } of [list, one]) await isAsBefore(page);
  await statusOf(list.page, after.body.id, 'active').waitFor();
  await showsEveryEventOnce(one.page, service, before.id);
});

test('one of two API processes killed with -9, behind a balancer that leads to the other', async () => {
  await using dashboard = await startDashboard({ MASTER_KEY });
  const { service } = dashboard;
  await using second = await startSecondApi(service);
  await using balancer = await startFlakyTcpProxy(Number(new URL(second.apiUrl).port));
  const origin = `http://127.0.0.1:${balancer.port}`;
  const before = await dashboard.create({ session_name: 'before' });
  await using list = await dashboard.open('/', { origin });
  await using one = await dashboard.open(`/sessions/${before.id}`, { origin });
  await statusOf(list.page, before.id, 'active').waitFor();

  await second.end('SIGKILL');
  for (const { page } of [list, one])
    await says(page, /Not live:.*connects again by itself/).waitFor();
  expect((await extend(service, before.id)).status).toBe(200);
  const meanwhile = await dashboard.create({ session_name: 'meanwhile' });
  balancer.leadTo(Number(new URL(service.apiUrl).port));
  for (const { page } of [list, one]) await isAsBefore(page);
  await statusOf(list.page, meanwhile.id, 'active').waitFor();
  await showsEveryEventOnce(one.page, service, before.id);
});
