import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PAGES } from '#src/roles/api/dashboard/pages.ts';
import { startDashboard, type Dashboard } from '#test/support/dashboard/dashboard.ts';

/** Every entry of the menu and of the command palette leads somewhere, by keyboard alone. */

let dashboard: Dashboard;
beforeAll(async () => {
  dashboard = await startDashboard();
  await dashboard.create({ session_name: 'one' });
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

const PAGES_OF_MENU = Object.values(PAGES).filter(({ menu }) => menu);
const pathOf = (page: Page) => page.url().slice(dashboard.service.apiUrl.length);
const namesOf = (page: Page) => page.getByRole('dialog').locator('li button').allInnerTexts();

async function openPalette(page: Page): Promise<void> {
  // The page listens to keys once it has asked whose key this is.
  await page.locator('.brand .muted', { hasText: /./ }).waitFor();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').waitFor();
}

it('each entry of the menu opens its page', async () => {
  await using tab = await dashboard.open('/keys', { isOperator: true });
  const { page, faults } = tab;
  const menu = page.getByRole('navigation', { name: 'Pages' });
  await menu.getByRole('link', { name: 'Keys' }).waitFor();
  const titles = (await menu.getByRole('link').allInnerTexts()).filter((name) => name !== 'API');
  expect(titles).toEqual(PAGES_OF_MENU.map(({ title }) => title));
  for (const { title, path } of PAGES_OF_MENU) {
    await menu.getByRole('link', { name: title, exact: true }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => pathOf(page).split('?')[0]).toBe(path);
    await menu.locator('[aria-current=page]', { hasText: title }).waitFor();
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    await expect.poll(() => page.title()).toContain(title);
    // The keyboard goes on in the page's content.
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
  }
  expect(faults).toEqual([]);
});

it('each entry of the command palette does what it says', async () => {
  await using tab = await dashboard.open('/keys', { isOperator: true });
  const { page, faults } = tab;
  await page.getByRole('link', { name: 'Keys' }).waitFor();
  await openPalette(page);
  const names = await namesOf(page);
  const leadsTo: Record<string, string> = {
    ...Object.fromEntries(PAGES_OF_MENU.map(({ title, path }) => [title, path])),
    'Active sessions': '/?status=active',
    'Failed sessions': '/?status=failed',
    'Waiting sessions': '/?status=creating&status=queued',
    'API reference': '/docs',
  };
  const others = ['Change the theme', 'Sign out'];
  expect(names.toSorted()).toEqual([...Object.keys(leadsTo), ...others].toSorted());

  await page.keyboard.press('Escape');
  for (const [name, path] of Object.entries(leadsTo)) {
    await openPalette(page);
    for (const _ of Array(names.indexOf(name))) await page.keyboard.press('ArrowDown');
    expect(await page.locator('dialog .chosen').innerText()).toBe(name);
    await page.keyboard.press('Enter');
    await expect.poll(() => pathOf(page).replace(/\/$/, '')).toBe(path.replace(/\/$/, ''));
    if (path === '/docs') await page.goBack();
  }

  const theme = () => page.evaluate('document.documentElement.dataset.theme');
  const before = await theme();
  await openPalette(page);
  await page.keyboard.type('change the theme');
  await page.keyboard.press('Enter');
  await expect.poll(theme).not.toBe(before);
  await openPalette(page);
  await page.keyboard.type('sign out');
  await page.keyboard.press('Enter');
  await page.getByLabel('API key').waitFor();
  expect(faults).toEqual([]);
});
