import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inspect, startDashboard, type Dashboard } from '#test/support/dashboard/dashboard.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { looks } from './looks.ts';

/** What a real browser showed last, on the page of its session. */

let dashboard: Dashboard;
let id: string;
beforeAll(async () => {
  dashboard = await startDashboard({
    ...{ BROWSERS: 'process', POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '2' },
  });
  id = await endedWithPicture();
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

/** A session that has shown a shop and stopped, and whose last picture is stored. */
async function endedWithPicture(): Promise<string> {
  const created = await dashboard.create({ session_name: 'shows a shop' });
  const session = `/api/sessions/${created.id}`;
  const read = async (path: string) => (await dashboard.service.request('GET', path)).body;
  const driver = await chromium.connectOverCDP((await read(session)).cdp_url);
  const [page] = driver.contexts()[0]?.pages() ?? [];
  await page?.goto('data:text/html,<body style="background: teal"><h1>The shop is closed');
  await driver.close();
  await dashboard.service.request('DELETE', session);
  await eventually(async () => (await read(session)).status === 'stopped', 'it has stopped');
  await eventually(async () => {
    const headers = { authorization: `Bearer ${DEV_KEY}` };
    const answer = await fetch(`${dashboard.service.apiUrl}${session}/thumbnail`, { headers });
    await answer.arrayBuffer();
    return answer.status === 200;
  }, 'the last picture is stored');
  return created.id;
}

it.each(looks)('%s: it is there, but not at a moment of the past', async (look) => {
  await using tab = await dashboard.open(`/sessions/${id}`, look);
  const { page, faults } = tab;
  const picture = page.getByRole('img', { name: 'What the session’s browser showed last' });
  await picture.waitFor();
  const width = () =>
    picture.evaluate((image) => (image as { naturalWidth?: number }).naturalWidth);
  await expect.poll(width).toBe(640);
  await picture.scrollIntoViewIfNeeded();
  await inspect(page, 'last-picture', look);
  await page.getByRole('slider', { name: 'Moment that the page shows' }).press('ArrowLeft');
  await picture.waitFor({ state: 'detached' });
  expect(faults).toEqual([]);
});
