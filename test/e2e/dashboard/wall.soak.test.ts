import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KEPT_MS } from '#src/apps/dashboard/wall/slots.ts';
import {
  goTo,
  inspect,
  startDashboard,
  type Dashboard,
} from '#test/support/dashboard/dashboard.ts';
import { looks } from './looks.ts';

/** The wall of screens, in a real Chromium on the whole service with simulated browsers. */

const SESSIONS = 10;

let dashboard: Dashboard;
const ids: string[] = [];

beforeAll(async () => {
  dashboard = await startDashboard({ POOL_MIN_IDLE: '10', POOL_MAX_IDLE: '12' });
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

const tileOf = (page: Page, id: string) => page.locator(`.tile[data-id="${id}"]`);

/** When the page asked for pictures of the session, in ms. */
function asked(page: Page, id: string): Promise<number[]> {
  const script = `performance.getEntriesByType('resource')
    .filter(({ name }) => name.includes('${id}/screenshot')).map(({ startTime }) => startTime)`;
  return page.evaluate(script);
}

const countOf = async (page: Page, id: string) => (await asked(page, id)).length;

it('teaches while there is no active session, then shows the first by itself', async () => {
  await using tab = await dashboard.open('/wall');
  await tab.page.getByRole('heading', { name: 'No active session' }).waitFor();
  for (let number = 1; number <= SESSIONS; number += 1) {
    const body = { session_name: `screen-${number}`, labels: { row: `${number % 2}` } };
    ids.push((await dashboard.create(body)).id);
  }
  await expect.poll(() => tab.page.locator('.tile').count()).toBe(9);
  await tab.page.getByAltText('What the browser of screen-3 shows').waitFor();
  await tab.page.getByText(/requests a minute, of the 100,000/).waitFor();
  expect(tab.faults).toEqual([]);
});

it('asks for a picture in view at most once a second, and for none that is not seen', async () => {
  await using tab = await dashboard.open('/wall?size=16', { width: 390 });
  const { page } = tab;
  await expect.poll(() => page.locator('.tile').count()).toBe(SESSIONS);
  const tiles = page.locator('.tile');
  const first = (await tiles.first().getAttribute('data-id')) ?? '';
  const last = (await tiles.last().getAttribute('data-id')) ?? '';
  await expect.poll(() => countOf(page, first)).toBeGreaterThanOrEqual(6);
  expect(await countOf(page, last)).toBe(0);
  // The browser notes a request later than the page begins it: the next can seem nearer, by that.
  const times = await asked(page, first);
  for (const [begun, from] of times.entries())
    for (const [later, to] of times.entries())
      if (later > begun) expect(to - from).toBeGreaterThanOrEqual((later - begun) * 1000 - 500);
  await tiles.last().scrollIntoViewIfNeeded();
  await expect.poll(() => countOf(page, last)).toBeGreaterThanOrEqual(2);
});

it('asks for nothing in a hidden tab, and goes on in front', async () => {
  await using hidden = await dashboard.open('/wall?size=4&q=screen-1');
  await using seen = await dashboard.open('/wall?size=4&q=screen-1');
  const id = ids[0] ?? '';
  await tileOf(hidden.page, id).locator('img').waitFor();
  await hide(hidden.page, true);
  const before = await countOf(hidden.page, id);
  const seenBefore = await countOf(seen.page, id);
  await expect.poll(() => countOf(seen.page, id)).toBeGreaterThanOrEqual(seenBefore + 3);
  // One may have been under way.
  expect(await countOf(hidden.page, id)).toBeLessThanOrEqual(before + 1);
  await hide(hidden.page, false);
  await expect.poll(() => countOf(hidden.page, id)).toBeGreaterThanOrEqual(before + 2);
});

function hide(page: Page, isHidden: boolean): Promise<unknown> {
  return page.evaluate(`Object.defineProperty(document, 'hidden',
    { configurable: true, get: () => ${isHidden} });
    document.dispatchEvent(new Event('visibilitychange'))`);
}

it('shows those of a filter and pinned ones, and its address holds them', async () => {
  await using tab = await dashboard.open('/wall?label=row%3D1');
  const { page } = tab;
  await expect.poll(() => page.locator('.tile').count()).toBe(5);
  await page.getByRole('button', { name: 'Pin screen-9' }).click();
  await page.getByRole('button', { name: 'row=1 ×' }).click();
  await page.getByRole('button', { name: '4 screens' }).click();
  await expect.poll(() => page.locator('.tile').count()).toBe(4);
  expect(new URL(page.url()).search).toBe(`?size=4&pin=${ids[8]}`);
  await goTo(page, page.url());
  await tileOf(page, ids[8] ?? '').waitFor();
});

it('is used by keyboard, and opens the live screen', async () => {
  await using tab = await dashboard.open('/wall?size=4');
  const { page } = tab;
  await expect.poll(() => page.locator('.tile').count()).toBe(4);
  const third = (await page.locator('.tile').nth(2).getAttribute('data-id')) ?? '';
  const screens = page.getByRole('button', { name: /^Live screen of/ });
  await screens.first().click();
  const dialog = page.getByRole('dialog', { name: 'Live screen' });
  await dialog.getByText('Connected', { exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await expect.poll(() => dialog.count()).toBe(0);
  await page.locator('.tile a.name').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/sessions/${third}`);
});

it.each(looks)('%s: no finding of axe', async (look) => {
  await using tab = await dashboard.open('/wall', look);
  await expect.poll(() => tab.page.locator('.tile').count()).toBe(9);
  await tab.page.locator('.tile img').first().waitFor();
  await inspect(tab.page, 'wall', look);
  expect(tab.faults).toEqual([]);
});

it('keeps the last picture of an ended session with the reason, then shows the next', async () => {
  await using tab = await dashboard.open('/wall?size=9');
  const { page } = tab;
  const id = ids[9] ?? '';
  await tileOf(page, id).locator('img').waitFor();
  expect(await tileOf(page, ids[0] ?? '').count()).toBe(0);
  // For the page no time passes until the picture with its reason has been seen.
  const now = Date.now();
  await page.clock.setFixedTime(now);
  await dashboard.service.request('DELETE', `/api/sessions/${id}`);
  await tileOf(page, id).getByText('Ended: user').waitFor();
  expect(await tileOf(page, id).locator('img').count()).toBe(1);
  await page.clock.setFixedTime(now + KEPT_MS);
  await tileOf(page, ids[0] ?? '').waitFor();
  expect(await tileOf(page, id).count()).toBe(0);
});
