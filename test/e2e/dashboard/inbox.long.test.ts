import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { goTo, startDashboard, type Dashboard } from '#test/support/dashboard/dashboard.ts';
import { eventually } from '#test/support/service/service.ts';

/** How often the inbox of hand-offs is read: each reading costs the organization ten units. */

let dashboard: Dashboard;
const sessions: string[] = [];
beforeAll(async () => {
  dashboard = await startDashboard();
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());
afterEach(async () => {
  for (const id of sessions.splice(0))
    await dashboard.service.request('DELETE', `/api/sessions/${id}`);
});

/** A request of a session of its own, once that has a browser. */
async function request(): Promise<void> {
  const { id } = await dashboard.create({ session_name: 'shop' });
  sessions.push(id);
  await eventually(async () => {
    const path = `/api/sessions/${id}/handoffs`;
    const body = { instructions: 'Please sign in.' };
    return (await dashboard.service.request('POST', path, body)).status === 201;
  }, 'a hand-off is asked for');
}

/** Resolves once the page has had all events until now: they arrive in their order. */
async function untilEventsArrived(page: Page): Promise<void> {
  const { id } = await dashboard.create({ session_name: 'the-last-event' });
  sessions.push(id);
  await page.locator(`[data-id="${id}"]`).waitFor();
}

const waiting = (page: Page, count: number) =>
  page.locator('.count', { hasText: `${count} waiting` }).waitFor({ state: 'attached' });

/** Lets the test hide the tab: Chromium never hides it by itself without a screen. */
const HIDEABLE = `
  Object.defineProperty(document, 'hidden', { get: () => globalThis.isAway === true });
  globalThis.hide = (isAway) => {
    globalThis.isAway = isAway;
    document.dispatchEvent(new Event('visibilitychange'));
  };
`;

it('is not read before the time that the service asked for, whatever happens meanwhile', async () => {
  await using tab = await dashboard.open('/');
  const { page } = tab;
  await page.clock.install();
  await goTo(page, page.url());
  await request();
  await waiting(page, 1);
  let refusals = 0;
  await page.route('**/api/handoffs', (route) => {
    refusals += 1;
    const headers = { 'retry-after': '3600' };
    return route.fulfill({ status: 429, headers, json: { message: 'Too many requests.' } });
  });
  await request();
  await expect.poll(() => refusals).toBe(1);
  await request();
  await untilEventsArrived(page);
  await page.clock.runFor(60_000);
  await untilEventsArrived(page);
  expect(refusals).toBe(1);
  await page.unrouteAll();
  await page.clock.fastForward(3_600_000);
  await waiting(page, 3);
});

it('is read once more after events that came while it was read, and their number shown', async () => {
  await using tab = await dashboard.open('/');
  const { page } = tab;
  await page.clock.install();
  await goTo(page, page.url());
  await request();
  await waiting(page, 1);
  const answer = Promise.withResolvers<undefined>();
  let readings = 0;
  await page.route('**/api/handoffs', async (route) => {
    readings += 1;
    if (readings > 1) return route.continue();
    const response = await route.fetch();
    await answer.promise;
    return route.fulfill({ response });
  });
  await request();
  await expect.poll(() => readings).toBe(1);
  for (const _ of Array(3)) await request();
  await untilEventsArrived(page);
  // What these events have made due is due now.
  await page.clock.runFor(1_000);
  expect(readings).toBe(1);
  answer.resolve(undefined);
  await waiting(page, 5);
  expect(readings).toBe(2);
});

it('is left out in a hidden tab, and read when it is looked at again', async () => {
  await using tab = await dashboard.open('/');
  const { page } = tab;
  await page.addInitScript(HIDEABLE);
  await page.clock.install();
  await goTo(page, page.url());
  await request();
  await waiting(page, 1);
  await page.evaluate('hide(true)');
  // Not before: the event of the first request may have come after the reading that shows it.
  let readings = 0;
  page.on('request', (asked) => {
    if (asked.url().endsWith('/api/handoffs')) readings += 1;
  });
  await request();
  await untilEventsArrived(page);
  await page.clock.runFor(10_000);
  expect(readings).toBe(0);
  await page.evaluate('hide(false)');
  await waiting(page, 2);
});

it('is shown also where the browser cannot make the notification that it allows', async () => {
  await using tab = await dashboard.open('/');
  const { page } = tab;
  await page.context().grantPermissions(['notifications']);
  await page.addInitScript(HIDEABLE);
  await page.addInitScript(`
    globalThis.Notification = class {
      static permission = 'granted';
      constructor() {
        globalThis.tried = true;
        throw new TypeError('Illegal constructor.');
      }
    };
  `);
  await goTo(page, page.url());
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  await request();
  await waiting(page, 1);
  await page.evaluate('hide(true)');
  await request();
  await waiting(page, 2);
  expect(await page.evaluate('tried')).toBe(true);
  expect(tab.faults).toEqual([]);
});
