import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  buildDashboard,
  dashboardFolder,
  firstLoadOf,
} from '#src/start/embedded/build/dashboard.mjs';
import { inspect, startDashboard, type Dashboard } from '#test/support/dashboard/dashboard.ts';
import { DEV_KEY, type RunningService } from '#test/support/service/service.ts';

/** The dashboard in a real Chromium, on the whole service with simulated browsers. */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FIRST_LOAD_BYTES_MAX = 170_000;

let dashboard: Dashboard;
let service: RunningService;
const create = (body: object) => dashboard.create(body);

beforeAll(async () => {
  dashboard = await startDashboard();
  service = dashboard.service;
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

const statusOf = (page: Page, id: string, status: string) =>
  rowOf(page, id).locator('.status', { hasText: status });
const rowOf = (page: Page, id: string) => page.locator(`[data-id="${id}"]`);

describe('files', () => {
  it('are sent compressed, kept by their hash, under a strict policy, and need no other host', async () => {
    const answer = await fetch(`${service.apiUrl}/`, { headers: { 'accept-encoding': 'br' } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-encoding')).toBe('br');
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toContain('unsafe');
    expect(policy).toContain(new URL(service.runtime.gateway_ws_url ?? '').origin);
    const etag = answer.headers.get('etag') ?? '';
    const again = await fetch(`${service.apiUrl}/`, { headers: { 'if-none-match': etag } });
    expect(again.status).toBe(304);

    const html = await answer.text();
    expect(html).not.toMatch(/<script(?![^>]*src=)|style=|https?:/);
    const named = [...html.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)];
    expect(named).not.toEqual([]);
    for (const [, path] of named) {
      const file = await fetch(service.apiUrl + path);
      expect(file.status).toBe(200);
      expect(file.headers.get('cache-control')).toContain('immutable');
    }
    expect((await fetch(`${service.apiUrl}/assets/none.js`)).status).toBe(404);
  });

  it('take nothing of the rate limit that all browsers behind one address share', async () => {
    const left = async (path: string) => {
      const { headers } = await fetch(service.apiUrl + path);
      return Number(headers.get('x-ratelimit-remaining'));
    };
    const [script = ''] =
      (await (await fetch(service.apiUrl)).text()).match(/\/assets\/[^"]+/) ?? [];
    expect(script).not.toBe('');
    const before = await left('/');
    expect(before).toBeGreaterThan(0);
    for (const path of ['/keys', script, '/'])
      expect(await left(path)).toBeGreaterThanOrEqual(before);
  });

  it('of the first load are small', async () => {
    const bytes = await firstLoadOf(dashboardFolder(ROOT));
    console.log(`first load: ${bytes} bytes`);
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThanOrEqual(FIRST_LOAD_BYTES_MAX);
  });

  it('are not built again from the same sources', async () => {
    expect(await buildDashboard(ROOT, console.log)).toBe(false);
  });
});

describe('sign-in', () => {
  it('by an address asks before it replaces another sign-in', async () => {
    await using tab = await dashboard.open('/');
    const { page } = tab;
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    const kept = () => page.evaluate(`sessionStorage.getItem('bss-key')`);
    // A new document: an address that differs behind its # alone loads nothing.
    const follow = (hash: string) => page.goto(`${service.apiUrl}/?n=${hash.length}${hash}`);
    await follow('#key=bss_eve_0123456789abcdef0123456789abcdef');
    const question = page.getByRole('dialog', { name: 'Use the key of this link?' });
    await question.getByText('an organization that the service does not have').waitFor();
    expect(page.url()).not.toContain('bss_eve');
    expect(await kept()).toBe(DEV_KEY);
    await question.getByRole('button', { name: 'Cancel' }).click();
    await question.waitFor({ state: 'detached' });
    expect(await kept()).toBe(DEV_KEY);
    await follow('#key=%');
    await question.getByRole('button', { name: 'Use it' }).click();
    // The service does not know it.
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    expect(await kept()).toBe(null);
  });

  it('by the address leaves no key in it', async () => {
    await using tab = await dashboard.open('/');
    await tab.page.getByRole('heading', { name: 'Sessions' }).waitFor();
    expect(tab.page.url()).toBe(`${service.apiUrl}/`);
    expect(tab.faults).toEqual([]);
  });

  it('with a wrong key says so, with the right one goes on, and a refused key comes back', async () => {
    await using tab = await dashboard.open('/', { key: null });
    const { page } = tab;
    await page.getByLabel('API key').fill('bss_dev_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').filter({ hasText: 'does not know this key' }).waitFor();
    await page.getByLabel('API key').fill(DEV_KEY);
    await page.getByRole('button', { name: 'Sign in' }).click();
    // The page listens to keys once it has asked whose key this is.
    await page.locator('.brand .muted', { hasText: /./ }).waitFor();
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    await page.route('**/api/sessions/ses_gone', (route) =>
      route.fulfill({ status: 401, json: { message: 'The key was revoked.' } }),
    );
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('ses_gone');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'The key was revoked.' }).waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
  });
});

it('an empty list teaches how to create a session', async () => {
  await using tab = await dashboard.open('/');
  await tab.page.getByRole('heading', { name: 'No session yet' }).waitFor();
  expect(await tab.page.locator('pre').textContent()).toContain('/api/sessions');
});

describe('the list', () => {
  it('shows what happens, without being asked', async () => {
    await using tab = await dashboard.open('/');
    const { page } = tab;
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    const { id } = await create({ session_name: 'live-one', labels: { team: 'web' } });
    await statusOf(page, id, 'active').waitFor();
    await rowOf(page, id).getByText('team=web').waitFor();
    await service.request('DELETE', `/api/sessions/${id}`);
    await statusOf(page, id, 'stopped').waitFor();
    await rowOf(page, id).locator('.end', { hasText: 'user' }).waitFor();
    expect(tab.faults).toEqual([]);
  });

  it('filters by status, label and text, and its address holds them', async () => {
    const web = await create({ session_name: 'filter-web', labels: { app: 'shop' } });
    const other = await create({ session_name: 'filter-other' });
    await using tab = await dashboard.open('/?label=app%3Dshop');
    const { page } = tab;
    await rowOf(page, web.id).waitFor();
    expect(await rowOf(page, other.id).count()).toBe(0);
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await rowOf(page, other.id).waitFor();
    await page.getByLabel('Search by name or id').fill('filter-o');
    await expect.poll(() => rowOf(page, web.id).count()).toBe(0);
    await page.getByRole('button', { name: 'failed', exact: true }).click();
    await page.getByRole('heading', { name: 'No session matches' }).waitFor();
    expect(page.url()).toBe(`${service.apiUrl}/?status=failed&q=filter-o`);
  });

  it('is used by keyboard', async () => {
    const { id } = await create({ session_name: 'by-keyboard' });
    await using tab = await dashboard.open('/');
    const { page } = tab;
    await rowOf(page, id).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('by-keyboard');
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.space > .row').count()).toBe(1);
    await page.keyboard.press('j');
    await page.locator('.row.current').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/sessions/${id}`);
    await page.getByRole('heading', { name: 'by-keyboard' }).waitFor();
    await page.goBack();
    await rowOf(page, id).waitFor();
  });

  it('extends and stops several, and asks first', async () => {
    const ids = [];
    for (const name of ['bulk-1', 'bulk-2']) ids.push((await create({ session_name: name })).id);
    await using tab = await dashboard.open('/?q=bulk-');
    const { page } = tab;
    for (const id of ids) await rowOf(page, id).getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Extend by 30 min' }).click();
    await page.getByRole('heading', { name: 'Extend 2 sessions?' }).waitFor();
    await page.getByRole('button', { name: 'Extend', exact: true }).click();
    await page.getByText('2 extended.').waitFor();
    for (const id of ids) await rowOf(page, id).getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('heading', { name: 'Stop 2 sessions?' }).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
    await page.getByText('2 stopped.').waitFor();
    for (const id of ids) await statusOf(page, id, 'stopped').waitFor();
  });

  it('stops all that match its filters, and asks first with their number', async () => {
    const labels = { run: 'nightly' };
    const ids = [];
    for (const name of ['m-1', 'm-2']) ids.push((await create({ session_name: name, labels })).id);
    const other = await create({ session_name: 'm-3' });
    const read = async () => (await service.request('GET', `/api/sessions/${other.id}`)).body;
    await expect.poll(async () => (await read()).status).toBe('active');
    await using tab = await dashboard.open('/?label=run%3Dnightly');
    const { page } = tab;
    const stopAll = page.getByRole('button', { name: 'Stop all that match' });
    for (const id of ids) await statusOf(page, id, 'active').waitFor();
    await page.getByLabel('Search by name or id').fill('m-');
    await expect.poll(() => stopAll.count()).toBe(0);
    await page.getByLabel('Search by name or id').fill('');
    await stopAll.click();
    await page.getByRole('heading', { name: 'Stop all 2 open sessions?' }).waitFor();
    await inspect(page, 'list-stop-matching', { theme: 'light', width: 1440 });
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    for (const id of ids) await statusOf(page, id, 'active').waitFor();
    await stopAll.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
    await page.getByText('2 stopped.').waitFor();
    for (const id of ids) await statusOf(page, id, 'stopped').waitFor();
    expect((await read()).status).toBe('active');
  });
});

/** The other looks are in `list.long.test.ts`. */
it('no finding of axe on any page, in the dark on a phone', async () => {
  const look = { theme: 'dark', width: 390 } as const;
  const { id } = await create({ session_name: `seen-${look.theme}`, labels: { team: 'web' } });
  await using tab = await dashboard.open('/', look);
  const { page, faults } = tab;
  await rowOf(page, id).getByText('team=web').waitFor();
  await inspect(page, 'list', look);
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').waitFor();
  await inspect(page, 'palette', look);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  await inspect(page, 'sign-in', look);
  expect(faults).toEqual([]);
});

it('loads a page again by itself after its script could not be loaded', async () => {
  await using tab = await dashboard.open('/');
  const { page } = tab;
  for (const address of ['**/assets/keys-page*.js', '**/keys'])
    await page.route(address, (route) => route.abort());
  await page.getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('alert').filter({ hasText: 'The page could not be loaded' }).waitFor();
  await page.unrouteAll();
  await page.getByLabel('Name of its user').waitFor();
});

it('tells of a killed service, and shows all that happened once the service is back', async () => {
  const before = await create({ session_name: 'before-the-kill' });
  await using tab = await dashboard.open('/');
  const { page } = tab;
  await rowOf(page, before.id).waitFor();
  await service.end('SIGKILL');
  await page.getByRole('alert').filter({ hasText: 'Not live' }).waitFor();
  await service.startAgain();
  const after = await create({ session_name: 'after-the-kill' });
  await statusOf(page, after.id, 'active').waitFor();
  await expect.poll(() => page.getByText('Not live').count()).toBe(0);
});
