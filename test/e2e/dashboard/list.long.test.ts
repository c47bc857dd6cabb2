import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Dashboard,
  goTo,
  inspect,
  LOOKS,
  startDashboard,
} from '#test/support/dashboard/dashboard.ts';
import type { RunningService } from '#test/support/service/service.ts';

/** The list of sessions: its pages, its stream of events, and the list of a moment. */

let dashboard: Dashboard;
let service: RunningService;
const create = (body: object) => dashboard.create(body);

beforeAll(async () => {
  dashboard = await startDashboard();
  service = dashboard.service;
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

const rowOf = (page: Page, id: string) => page.locator(`[data-id="${id}"]`);
const statusOf = (page: Page, id: string, status: string) =>
  rowOf(page, id).locator('.status', { hasText: status });

describe('the list, while its service refuses', () => {
  /** Answers the list with a page of so many sessions, and with what is left of the rate limit. */
  async function answerPages(page: Page, total: number, remaining: number) {
    const { body } = await service.request('GET', '/api/sessions?limit=1');
    const [session] = body.sessions;
    const offsets: number[] = [];
    await page.route('**/api/sessions?limit=100&offset=*', async (route) => {
      const offset = Number(new URL(route.request().url()).searchParams.get('offset'));
      offsets.push(offset);
      const length = Math.max(0, Math.min(100, total - offset));
      const sessions = Array.from({ length }, (_, at) => ({
        ...session,
        id: `ses_${offset + at}`,
      }));
      const now = await page.evaluate<number>('Date.now()');
      const headers = {
        date: new Date(now).toUTCString(),
        'x-ratelimit-limit': '100',
        'x-ratelimit-remaining': `${remaining}`,
        'x-ratelimit-reset': `${Math.ceil(now / 1000) + 60}`,
      };
      return route.fulfill({ headers, json: { sessions, total } });
    });
    return offsets;
  }

  it('reads its other pages in the next minute once half of the rate limit is taken', async () => {
    await create({ session_name: 'one-of-many' });
    await using tab = await dashboard.open('/keys');
    const { page } = tab;
    await page.clock.install();
    const offsets = await answerPages(page, 250, 40);
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await page.getByText('Loading… 100').waitFor();
    expect(new Set(offsets)).toEqual(new Set([0]));
    await page.clock.runFor(61_000);
    await expect.poll(() => offsets).toContain(100);
    await page.clock.runFor(61_000);
    await page.getByText(/^250 of 250/).waitFor();
    expect(new Set(offsets)).toEqual(new Set([0, 100, 200]));
  });

  it('says how many are not shown, if there is no stream of events', async () => {
    await using tab = await dashboard.open('/keys');
    const { page } = tab;
    await answerPages(page, 2_500, 100);
    await page.route('**/api/events', (route) =>
      route.fulfill({ status: 429, json: { message: 'As many streams are open as may be.' } }),
    );
    await goTo(page, service.apiUrl);
    await page.getByRole('alert').filter({ hasText: 'As many streams are open' }).waitFor();
    await page.getByText('100 of 100, the newest; 2400 older ones are not shown').waitFor();
  });

  it('has the sessions of a label, though its first answer is refused', async () => {
    const { id } = await create({ labels: { refused: 'once' } });
    await using tab = await dashboard.open('/keys');
    const { page } = tab;
    let asked = 0;
    await page.route('**/api/sessions?*label=*', (route) => {
      asked += 1;
      const json = { error: 'UNAVAILABLE', message: 'The list is late.' };
      return asked === 1 ? route.fulfill({ status: 503, json }) : route.continue();
    });
    await goTo(page, `${service.apiUrl}/?label=refused%3Donce`);
    await expect.poll(() => asked).toBe(2);
    await rowOf(page, id).waitFor();
  });
});

describe('the stream of events', () => {
  it('is opened again after its last event, and anew once that is refused', async () => {
    const positions: (string | undefined)[] = [];
    const type = 'text/event-stream';
    const answers = [
      // A page cannot show it: it must not come again.
      { contentType: type, body: 'id: 5\nevent: a\ndata: no JSON\n\n' },
      { contentType: type, body: 'event: end\ndata: {"message":"It ends for a test."}\n\n' },
      { status: 400, json: { message: 'There is no such position.' } },
    ];
    await using tab = await dashboard.open('/keys');
    const { page } = tab;
    // An alert is shown until the next answer, so that waits until the alert has been seen.
    const seen = { end: Promise.withResolvers<void>(), refusal: Promise.withResolvers<void>() };
    await page.route('**/api/events', async (route) => {
      const turn = positions.push(route.request().headers()['last-event-id']);
      if (turn === 3) await seen.end.promise;
      if (turn === 4) await seen.refusal.promise;
      const answer = answers[turn - 1];
      await (answer === undefined ? route.continue() : route.fulfill(answer));
    });
    await goTo(page, service.apiUrl);
    await page.getByRole('alert').filter({ hasText: 'It ends for a test.' }).waitFor();
    seen.end.resolve();
    await page.getByRole('alert').filter({ hasText: 'There is no such position.' }).waitFor();
    seen.refusal.resolve();
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);
    const { id } = await create({ session_name: 'after-the-refusal' });
    await statusOf(page, id, 'active').waitFor();
    expect(positions).toEqual([undefined, '5', '5', undefined]);
  });
});

describe('the list of a moment', () => {
  it('has the sessions of that time, leads to each at that time, and goes back to now', async () => {
    const { id } = await create({ session_name: 'then-active' });
    const read = async () => (await service.request('GET', `/api/sessions/${id}`)).body.status;
    await expect.poll(read).toBe('active');
    const then = new Date().toISOString();
    await expect.poll(() => new Date().toISOString() > then).toBe(true);
    await service.request('DELETE', `/api/sessions/${id}`);
    const later = await create({ session_name: 'then-not-there' });
    await using tab = await dashboard.open(`/?at=${encodeURIComponent(then)}`);
    const { page, faults } = tab;
    const row = page.getByRole('row').filter({ hasText: 'then-active' });
    await row.locator('.status', { hasText: 'active' }).waitFor();
    expect(await page.getByText('then-not-there').count()).toBe(0);
    await inspect(page, 'list-past', { theme: 'light', width: 1440 });
    const answered = page.waitForResponse(/as_of=.*status=stopped/);
    await page.getByRole('button', { name: 'stopped', exact: true }).click();
    await answered;
    await expect.poll(() => page.getByText('Loading').count()).toBe(0);
    expect(await row.count()).toBe(0);
    await page.getByRole('button', { name: 'stopped', exact: true }).click();
    await row.getByRole('link').click();
    await page.getByRole('heading', { name: 'then-active' }).waitFor();
    expect(new URL(page.url()).searchParams.get('at')).toBe(then);
    await page.goBack();
    await page.getByRole('button', { name: 'Back to now' }).click();
    await rowOf(page, later.id).waitFor();
    await statusOf(page, id, 'stopped').waitFor();
    expect(faults).toEqual([]);
  });

  it('is chosen by its time', async () => {
    await using tab = await dashboard.open('/');
    const { page } = tab;
    await page.getByLabel('As of').fill('2020-01-01T00:00:00');
    expect(new URL(page.url()).search).toBe('');
    await page.getByLabel('As of').press('Enter');
    await page.getByRole('heading', { name: 'No session matches' }).waitFor();
    expect(new URL(page.url()).searchParams.get('at')).toMatch(/^20(19|20)-/);
    expect(await page.evaluate('document.activeElement.name')).toBe('time');
  });

  it('shows nothing of another moment while it is read, nor after it is refused', async () => {
    await create({ session_name: 'of-the-first-moment' });
    await using tab = await dashboard.open(`/?at=${encodeURIComponent(new Date().toISOString())}`);
    const { page } = tab;
    const row = page.getByRole('row').filter({ hasText: 'of-the-first-moment' });
    await row.waitFor();
    await page.getByLabel('As of').fill('2999-01-01T00:00:00');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'The sessions could not be read' }).waitFor();
    expect(await row.count()).toBe(0);
  });

  it('is read page by page, by a click', async () => {
    const listed = await service.request('GET', '/api/sessions?limit=1');
    const [session] = listed.body.sessions;
    const asked: (string | null)[] = [];
    await using tab = await dashboard.open('/');
    const { page } = tab;
    await page.route('**/api/sessions?as_of=*', (route) => {
      const offset = new URL(route.request().url()).searchParams.get('offset');
      asked.push(offset);
      const begin = Number(offset ?? 0);
      const sessions = Array.from({ length: Math.min(100, 101 - begin) }, (_, at) => ({
        ...session,
        id: `ses_${begin + at}`,
      }));
      return route.fulfill({ json: { sessions, total: 101 } });
    });
    await goTo(page, `${service.apiUrl}/?at=2026-11-20T09:30:00Z`);
    await page.getByText('100 match, of the newest 100 of 101').waitFor();
    await page.getByRole('button', { name: 'More sessions' }).click();
    await page.getByText('101 of 101').waitFor();
    expect(await page.getByRole('row').count()).toBe(102);
    expect(asked).toEqual([null, '100']);
  });
});

it.each(LOOKS)('%s: no finding of axe on any page', async (look) => {
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
