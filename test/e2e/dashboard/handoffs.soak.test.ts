import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  goTo,
  inspect,
  startDashboard,
  type Dashboard,
} from '#test/support/dashboard/dashboard.ts';
import { eventually } from '#test/support/service/service.ts';
import { looks } from './looks.ts';

/** Hand-offs to people, in a real Chromium on the whole service with simulated browsers. */

let dashboard: Dashboard;
beforeAll(async () => {
  dashboard = await startDashboard();
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

/** A request of a session of its own, once that has a browser. */
async function request(instructions: string) {
  const { id } = await dashboard.create({ session_name: 'shop' });
  const path = `/api/sessions/${id}/handoffs`;
  const answer = await eventually(async () => {
    const asked = await dashboard.service.request('POST', path, { instructions });
    return asked.status === 201 && asked;
  }, 'a hand-off is asked for');
  return { session: id, path: `${path}/${answer.body.id}` };
}

/** The screen's pixels are there. */
async function untilPainted(page: Page) {
  const pixel = `[...document.querySelector('.screen canvas')?.getContext('2d')
    .getImageData(0, 0, 1, 1).data ?? []].join()`;
  await expect.poll(() => page.evaluate(pixel)).not.toMatch(/^(?:0,0,0,\d+)?$/);
}

const end = (session: string) => dashboard.service.request('DELETE', `/api/sessions/${session}`);
const complete = (path: string, body: object) =>
  dashboard.service.request('POST', `${path}/complete`, body);
const read = async (path: string) => (await dashboard.service.request('GET', path)).body;

describe('the hand-offs page', () => {
  it.each(looks)('teaches how to ask while nothing waits, %s', async (look) => {
    await using tab = await dashboard.open('/handoffs', look);
    await tab.page.getByRole('heading', { name: 'Nothing waits for a person' }).waitFor();
    await inspect(tab.page, 'handoffs-empty', look);
    expect(tab.faults).toEqual([]);
  });

  it.each(looks)('a request appears, is taken and given back, %s', async (look) => {
    await using tab = await dashboard.open('/handoffs', look);
    const { page } = tab;
    await page.getByRole('heading', { name: 'Nothing waits for a person' }).waitFor();
    const { path, session } = await request('Please sign in.');
    const item = page.getByRole('listitem').filter({ hasText: 'Please sign in.' });
    await item.getByText('Waits for a person').waitFor();
    await page.locator('.count', { hasText: '1 waiting' }).waitFor({ state: 'attached' });
    await inspect(page, 'handoffs', look);
    await item.getByRole('button', { name: 'Take' }).click();
    await page.getByRole('heading', { name: 'What you are asked to do' }).waitFor();
    await untilPainted(page);
    await inspect(page, 'handoffs-taken', look);
    await page.getByLabel('Yes').check();
    await page.getByLabel('Note for the automation').fill('Signed in.');
    await page.getByRole('button', { name: 'Give it back' }).click();
    await page.getByRole('heading', { name: 'Nothing waits for a person' }).waitFor();
    const given = { status: 'completed', success: true, note: 'Signed in.' };
    expect(await read(path)).toMatchObject(given);
    await end(session);
  });

  it('shows the holder of a hand-off that it ended elsewhere', async () => {
    await using tab = await dashboard.open('/handoffs');
    const { page } = tab;
    const [first, second] = [await request('Solve it.'), await request('Solve that.')];
    const take = (text: string) =>
      page.getByRole('listitem').filter({ hasText: text }).getByRole('button').click();
    await take('Solve it.');
    await page.getByText('Connected', { exact: true }).waitFor();
    await complete(first.path, { success: false, note: 'Too hard.' });
    await page.getByRole('heading', { name: 'It was given back' }).waitFor();
    await page.getByText('as not done. The note: Too hard.').waitFor();
    await inspect(page, 'handoffs-over', { theme: 'light', width: 1440 });
    await page.getByRole('button', { name: 'Close' }).click();
    await take('Solve that.');
    await page.getByText('Connected', { exact: true }).waitFor();
    await end(second.session);
    await page.getByRole('heading', { name: 'It is over' }).waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('heading', { name: 'Nothing waits for a person' }).waitFor();
    await end(first.session);
  });

  it('offers a taken one to its holder alone, and nothing to a viewer', async () => {
    const { path, session } = await request('Choose a seat.');
    const [bea, vic] = [await dashboard.keyOf('member', 'bea'), await dashboard.keyOf('viewer')];
    await using held = await dashboard.open('/handoffs', { key: bea });
    await using other = await dashboard.open('/handoffs');
    await using viewer = await dashboard.open('/handoffs', { key: vic });
    const itemOf = ({ page }: typeof held) =>
      page.getByRole('listitem').filter({ hasText: 'Choose a seat.' });
    await itemOf(viewer).getByText('Waits for a person').waitFor();
    // What a user may do is known once the organization is.
    await viewer.page.locator('.brand .muted', { hasText: /./ }).waitFor();
    expect(await itemOf(viewer).getByRole('button').count()).toBe(0);
    await itemOf(held).getByRole('button', { name: 'Take' }).click();
    await held.page.getByText('Connected', { exact: true }).waitFor();
    await itemOf(other).getByText('Taken by bea.').waitFor();
    await itemOf(viewer).getByText('Taken by bea.').waitFor();
    for (const tab of [other, viewer])
      expect(await itemOf(tab).getByRole('button').count()).toBe(0);
    await goTo(held.page, held.page.url());
    await itemOf(held).getByText('You have it.').waitFor();
    await itemOf(held).getByRole('button', { name: 'Open' }).click();
    await held.page.getByText('Connected', { exact: true }).waitFor();
    expect(await read(path)).toMatchObject({ status: 'taken', taken_by: 'bea' });
    await end(session);
    await held.page.getByRole('heading', { name: 'It is over' }).waitFor();
  });
});

it('a notification tells of a new request, unless the page is looked at', async () => {
  await using tab = await dashboard.open('/');
  const { page } = tab;
  await page.context().grantPermissions(['notifications']);
  // Chromium shows it nowhere without a screen, and its tabs are never in the background there.
  await page.addInitScript(`
    globalThis.shown = [];
    globalThis.Notification = class extends Notification {
      constructor(title, options) {
        super(title, options);
        shown.push([title, options.body, this]);
      }
    };
    Object.defineProperty(document, 'hidden', { get: () => globalThis.isAway === true });
  `);
  await goTo(page, page.url());
  const told = () => page.evaluate('shown.map(([title, body]) => [title, body])');
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  const seen = await request('While it is looked at.');
  await page.locator('.count', { hasText: '1 waiting' }).waitFor({ state: 'attached' });
  expect(await told()).toEqual([]);
  await page.evaluate('isAway = true');
  const missed = await request('While it is not.');
  await expect.poll(told).toEqual([['A person is asked for', 'While it is not.']]);
  await page.evaluate("shown[0][2].dispatchEvent(new Event('click'))");
  await page.getByRole('listitem').filter({ hasText: 'While it is not.' }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/handoffs');
  for (const { session } of [seen, missed]) await end(session);
  expect(tab.faults).toEqual([]);
});

describe('the page of a session', () => {
  it.each(looks)('tells that a person is asked for, who takes it there, %s', async (look) => {
    const { session, path } = await request('Please enter the code.\nIt is on the phone.');
    await using tab = await dashboard.open(`/sessions/${session}`, look);
    const { page, faults } = tab;
    const banner = page.getByRole('region', { name: 'Hand-off' });
    await banner.getByText('dev asks for a person.').waitFor();
    await page.locator('.timeline').waitFor();
    await inspect(page, 'session-handoff', look);
    await banner.getByRole('button', { name: 'Take' }).press('Enter');
    await page.locator('h2:focus', { hasText: 'What you are asked to do' }).waitFor();
    await untilPainted(page);
    await inspect(page, 'session-handoff-taken', look);
    await page.getByRole('button', { name: 'Close' }).click();
    await banner.getByText('You have this browser; its automation waits.').waitFor();
    await banner.getByRole('button', { name: 'Open' }).click();
    // A screen that is closed while it connects is an error in the console.
    await page.getByText('Connected', { exact: true }).waitFor();
    await page.getByLabel('No', { exact: true }).check();
    await page.getByRole('button', { name: 'Give it back' }).click();
    await expect.poll(() => banner.count()).toBe(0);
    expect(await read(path)).toMatchObject({ status: 'completed', success: false });
    await end(session);
    expect(faults).toEqual([]);
  });

  it('tells all others who has its browser', async () => {
    const { session, path } = await request('Look at it.');
    const authorization = { authorization: `Bearer ${await dashboard.keyOf('member', 'bea')}` };
    await using tab = await dashboard.open(`/sessions/${session}`);
    const banner = tab.page.getByRole('region', { name: 'Hand-off' });
    await banner.getByRole('button', { name: 'Take' }).waitFor();
    await dashboard.service.request('POST', `${path}/take`, undefined, authorization);
    await banner.getByText('bea has this browser; its automation waits.').waitFor();
    expect(await banner.getByRole('button').count()).toBe(0);
    await end(session);
    await expect.poll(() => banner.count()).toBe(0);
  });
});

it('after a kill of the service the page tells it, and has missed no request', async () => {
  await using tab = await dashboard.open('/handoffs');
  const { page } = tab;
  await page.getByRole('heading', { name: 'Nothing waits for a person' }).waitFor();
  await dashboard.service.end('SIGKILL');
  await page.getByRole('alert').filter({ hasText: 'Not live' }).waitFor();
  let refused = 0;
  await page.route('**/api/events', (route) => {
    refused += 1;
    return route.abort();
  });
  await dashboard.service.startAgain();
  await request('Asked while the page was away.');
  const before = refused;
  await expect.poll(() => refused, { timeout: 60_000 }).toBeGreaterThan(before);
  await page.unrouteAll();
  await page.getByRole('listitem').filter({ hasText: 'Asked while the page was away.' }).waitFor();
  await expect.poll(() => page.getByRole('alert').count()).toBe(0);
});
