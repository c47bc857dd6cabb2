import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  goTo,
  inspect,
  startDashboard,
  type Dashboard,
} from '#test/support/dashboard/dashboard.ts';
import { eventually } from '#test/support/service/service.ts';
import { looks } from './looks.ts';

/** Addresses of a screen for people without a key, and the pages that may embed them. */

let dashboard: Dashboard;
let id: string;
beforeAll(async () => {
  dashboard = await startDashboard();
  ({ id } = await dashboard.create({ session_name: 'shared' }));
  const isActive = async () => (await read(`/api/sessions/${id}`)).status === 'active';
  await eventually(isActive, 'it is active');
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

const read = async (path: string) => (await dashboard.service.request('GET', path)).body;
const shares = async () => (await read(`/api/sessions/${id}/shares`)).shares;

it.each(looks)('%s: an address is made, copied, opened and revoked', async (look) => {
  await using tab = await dashboard.open(`/sessions/${id}`, look);
  const { page, faults } = tab;
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByText('Share its screen').click();
  await page.getByText('There is no address now.').waitFor();
  await page.getByRole('combobox', { name: /^For/ }).selectOption('watching');
  await page.getByLabel('Expires in').selectOption('1 hour');
  await page.getByRole('button', { name: 'Make an address' }).click();
  await page.getByText('it is not shown again').waitFor();
  const row = page.getByRole('row').filter({ hasText: 'watching' });
  await row.getByText('never').waitFor();
  await row.scrollIntoViewIfNeeded();
  await inspect(page, 'session-shares', look);
  await page.getByRole('button', { name: 'Copy' }).first().click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  const url = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(await shares()).toMatchObject([{ mode: 'view', created_by: 'dev', used: false }]);

  const stranger = await page.context().newPage();
  await goTo(stranger, url);
  await expect.poll(shares).toMatchObject([{ used: true }]);
  await expect.poll(() => row.getByText('never').count()).toBe(0);
  await stranger.close();
  await row.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('heading', { name: 'Revoke this address?' }).waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('There is no address now.').waitFor();
  // The event of the revocation may come before its answer.
  await expect.poll(() => page.getByText('it is not shown again').count()).toBe(0);
  expect(await shares()).toEqual([]);
  await eventually(async () => (await fetch(url)).status === 410, 'the address is refused');
  expect(faults).toEqual([]);
});

it('addresses are read only while their part of the page is open', async () => {
  await using tab = await dashboard.open(`/sessions/${id}`);
  const { page } = tab;
  let readings = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/shares')) readings += 1;
  });
  const summary = page.getByText('Share its screen');
  await summary.waitFor();
  await dashboard.service.request('PATCH', `/api/sessions/${id}`, { description: 'changed' });
  await page.getByText('changed', { exact: true }).first().waitFor();
  expect(readings).toBe(0);
  await summary.click();
  await page.getByText('There is no address now.').waitFor();
  expect(readings).toBeGreaterThan(0);
});

it('a viewer is not offered to share a screen', async () => {
  const key = await dashboard.keyOf('viewer');
  await using tab = await dashboard.open(`/sessions/${id}`, { key });
  await tab.page.getByText('to drive the browser takes a member').waitFor();
  expect(await tab.page.getByText('Share its screen').count()).toBe(0);
});

it.each(looks)('%s: an admin allows the pages of an origin, and takes it back', async (look) => {
  await using tab = await dashboard.open(`/sessions/${id}`, look);
  const { page, faults } = tab;
  await page.getByText('Share its screen').click();
  await page.getByRole('link', { name: 'Which pages may embed it' }).click();
  await page.getByText('No page may embed a shared screen now.').waitFor();
  const [origin, add] = [page.getByLabel('Origin'), page.getByRole('button', { name: 'Add' })];
  const box = await page.getByRole('heading', { name: 'embed a shared screen' }).boundingBox();
  expect(box?.y).toBeLessThan(900);
  await origin.fill('no origin');
  await add.click();
  await page.getByRole('alert').filter({ hasText: 'An origin is scheme, host and port' }).waitFor();
  await origin.fill('https://app.example.com/tickets?open');
  await add.click();
  const row = page.getByRole('row').filter({ hasText: 'https://app.example.com' });
  await row.waitFor();
  // The list may have been read again before the change was answered.
  await expect.poll(() => page.getByRole('alert').count()).toBe(0);
  await inspect(page, 'keys-origins', look);
  const allowed = async () => (await read('/api/organization')).allowed_origins;
  expect(await allowed()).toEqual(['https://app.example.com']);
  await row.getByRole('button', { name: 'Remove' }).click();
  await page.getByText('No page may embed a shared screen now.').waitFor();
  expect(await allowed()).toEqual([]);
  // The browser itself tells of the refused request.
  expect(faults.filter((fault) => !fault.includes('400'))).toEqual([]);
});
