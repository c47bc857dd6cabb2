import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Dashboard,
  goTo,
  inspect,
  OPERATOR_TOKEN,
  startDashboard,
} from '#test/support/dashboard/dashboard.ts';
import { eventually } from '#test/support/service/service.ts';
import { looks } from './looks.ts';

/** The page of the pool in a real Chromium; the pool has two browsers, so that sessions wait. */

let dashboard: Dashboard;
beforeAll(async () => {
  dashboard = await startDashboard({
    POOL_MAX: '2',
    POOL_MIN_IDLE: '1',
    POOL_MAX_IDLE: '2',
    CREATE_WAIT: '200ms',
    QUEUE_AFTER: '100ms',
  });
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

const counter = (page: Page, name: string) => page.locator(`[data-counter=${name}]`);
const chart = (page: Page) => page.getByRole('slider', { name: /The pool over time/ });
/** Keys and clicks that come before the chart has its points go nowhere. */
const untilDrawn = (page: Page) =>
  expect
    .poll(async () => Number(await chart(page).getAttribute('aria-valuemax')))
    .toBeGreaterThan(1);
const queue = (page: Page) => page.getByRole('table', { name: 'The queue' });
const addressOf = (page: Page) => new URL(page.url()).searchParams;

/** Whether the chart has points of the colour of its line of busy browsers. */
const HAS_LINES = `(() => {
  const canvas = document.querySelector('.pool-chart canvas');
  if (canvas === null) return false;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const style = getComputedStyle(document.documentElement);
  const colour = style.getPropertyValue('--pool-busy').trim();
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  for (let at = 0; at < data.length; at += 4)
    if (data[at] === r && data[at + 1] === g && data[at + 2] === b) return true;
  return false;
})()`;

/** Runs a test with both browsers busy and a session that waits. */
async function withQueue(body: (waiting: string) => Promise<void>): Promise<void> {
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) ids.push((await dashboard.create({})).id);
  const isQueued = async () =>
    (await dashboard.service.request('GET', '/api/queue')).body.total === 1;
  await eventually(isQueued, 'one waits');
  try {
    await body(ids[2] ?? '');
  } finally {
    for (const id of ids.toReversed())
      await dashboard.service.request('DELETE', `/api/sessions/${id}`);
    const isEmpty = async () => {
      const { body } = await dashboard.service.request('GET', '/api/status');
      return body.autoscaler.pool_status.busy === 0;
    };
    await eventually(isEmpty, 'all sessions have ended');
  }
}

it('while no session waits, the page teaches who would', async () => {
  await using tab = await dashboard.open('/pool');
  await tab.page.getByRole('heading', { name: 'Pool and queue' }).waitFor();
  await tab.page.getByRole('heading', { name: 'No session waits' }).waitFor();
  expect(await tab.page.locator('pre').textContent()).toContain('/api/queue');
  expect(tab.faults).toEqual([]);
});

it('shows who waits and why while it happens, with a link to the session', async () => {
  await using tab = await dashboard.open('/pool');
  const { page } = tab;
  await page.getByRole('heading', { name: 'No session waits' }).waitFor();
  await withQueue(async (waiting) => {
    await queue(page).getByText('All servers are full: 2 of 2 browsers run.').waitFor();
    await expect.poll(() => counter(page, 'waiting').textContent()).toBe('1');
    await expect.poll(() => counter(page, 'busy').textContent()).toBe('2');
    await queue(page).getByRole('link', { name: waiting }).click();
    await page.waitForURL(`**/sessions/${waiting}`);
  });
  await page.goBack();
  await page.getByRole('heading', { name: 'No session waits' }).waitFor();
  expect(tab.faults).toEqual([]);
});

describe('the chart', () => {
  it('is of the range of its address, and has the same numbers as a table', async () => {
    await using tab = await dashboard.open('/pool?range=15m');
    const { page } = tab;
    await chart(page).waitFor();
    const quarter = page.getByRole('button', { name: '15 min' });
    expect(await quarter.getAttribute('aria-pressed')).toBe('true');
    for (const [title, name] of [
      ['24 h', '24h'],
      ['7 d', '7d'],
      ['1 h', '1h'],
    ] as const) {
      await page.getByRole('button', { name: title, exact: true }).click();
      expect(addressOf(page).get('range')).toBe(name);
    }
    await page.getByText('The same numbers as a table').click();
    const first = page
      .getByRole('table', { name: /The pool until/ })
      .getByRole('row')
      .nth(1);
    // Both change at once while the pool does.
    const totals = [counter(page, 'total'), first.getByRole('cell').nth(1)];
    const texts = () => Promise.all(totals.map((total) => total.textContent()));
    await expect.poll(async () => new Set(await texts()).size).toBe(1);
  });

  it('stays at the moment of a click, and goes back to now', async () => {
    await using tab = await dashboard.open('/pool?range=15m');
    const { page } = tab;
    await untilDrawn(page);
    await page.locator('.pool-chart .u-over').click({ position: { x: 200, y: 100 } });
    await page.getByRole('button', { name: 'Back to now' }).waitFor();
    const at = addressOf(page).get('at') ?? '';
    expect(Date.parse(at)).toBeLessThan(Date.now());
    await page.locator(`.pool-moment time[datetime="${at}"]`).waitFor();
    await page.getByText('the queue of now, not of the chosen moment').waitFor();
    await goTo(page, page.url());
    await page.locator(`.pool-moment time[datetime="${at}"]`).waitFor();
    await page.getByRole('button', { name: 'Back to now' }).click();
    await page.locator('.pool-moment', { hasText: 'Now' }).waitFor();
    expect(addressOf(page).has('at')).toBe(false);
    expect(tab.faults).toEqual([]);
  });

  it('is used by keyboard', async () => {
    await using tab = await dashboard.open('/pool?range=15m');
    const { page } = tab;
    await untilDrawn(page);
    // Each reading moves the window, and its first point is lost: from here on none is answered.
    let held = 0;
    await page.route('**/api/pool?from=*', () => {
      held += 1;
    });
    await expect.poll(() => held).toBeGreaterThan(0);
    await chart(page).focus();
    await page.keyboard.press('Home');
    await expect
      .poll(() => chart(page).getAttribute('aria-valuetext'))
      .toContain('0 browsers. 0 sessions wait.');
    await expect.poll(() => counter(page, 'total').textContent()).toBe('0');
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => chart(page).getAttribute('aria-valuenow')).toBe('2');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Back to now' }).waitFor();
    expect(addressOf(page).has('at')).toBe(true);
  });

  it('says what an event’s position in the address means here', async () => {
    await using tab = await dashboard.open('/pool?at=12');
    await tab.page.getByText('This page goes by time').waitFor();
    await chart(tab.page).waitFor();
  });
});

describe('for operators', () => {
  it('shows nothing of servers without the token, and asks for it', async () => {
    await using tab = await dashboard.open('/pool');
    const { page } = tab;
    await page.getByRole('button', { name: 'Give the operator’s token' }).click();
    await page.getByLabel('Operator’s token').waitFor();
    expect(await page.getByRole('heading', { name: 'Servers' }).count()).toBe(0);
  });

  it('drains a server and takes it back, and asks first', async () => {
    await using tab = await dashboard.open('/pool', { isOperator: true });
    const { page } = tab;
    const servers = page.getByRole('table', { name: 'Servers' });
    await servers.getByText('live').waitFor();
    await servers.getByRole('button', { name: /^Drain/ }).click();
    await page.getByRole('dialog').getByText('It takes no new sessions').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    expect(await servers.getByText('live').count()).toBe(1);
    await servers.getByRole('button', { name: /^Drain/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click();
    await servers.getByText(/drain(ing|ed)/).waitFor();
    await servers.getByRole('button', { name: /^Undrain/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Undrain' }).click();
    await servers.getByText('live').waitFor();
    expect(tab.faults).toEqual([]);
  });

  it('shows each decision with its inputs, page by page, and up to a moment', async () => {
    const operator = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    const ask = (method: string, path: string) =>
      dashboard.service.request(method, `/api/operator${path}`, undefined, operator);
    const { id } = (await ask('GET', '/servers')).body.servers[0];
    await ask('POST', `/servers/${id}/drain`);
    const isDecided = async () =>
      (await ask('GET', '/pool/decisions')).body.decisions[0]?.decision.target === 0;
    await eventually(isDecided, 'no browser is kept idle');
    await ask('POST', `/servers/${id}/undrain`);
    await using tab = await dashboard.open('/pool', { isOperator: true });
    const { page } = tab;
    const decisions = page.getByRole('table', { name: 'Decisions' });
    const first = decisions.getByRole('row').nth(1);
    await first.getByText(/^Keep \d+ browsers? idle/).waitFor();
    await first.locator('summary').click();
    // A newer decision may have come above it.
    await decisions.getByText('Median launch').waitFor();
    const older = page.getByRole('button', { name: 'Older decisions' });
    while ((await older.count()) > 0) {
      await older.click();
      await expect.poll(() => page.getByText('Reading…').count()).toBe(0);
    }
    // One more may have been made meanwhile: the page reads it at its next look.
    const lacking = async () => {
      const { body } = await ask('GET', '/pool/decisions');
      return (await decisions.getByRole('row').count()) - 1 - body.decisions.length;
    };
    await expect.poll(lacking).toBe(0);
    await goTo(page, `${dashboard.service.apiUrl}/pool?at=2026-01-01T00:00:00.000Z`);
    await page.getByRole('heading', { name: 'No decision' }).waitFor();
    expect(tab.faults).toEqual([]);
  });
});

it.each(looks)('%s: no finding of axe', async (look) => {
  await withQueue(async () => {
    await using tab = await dashboard.open('/pool?range=15m', look);
    const { page, faults } = tab;
    await queue(page).waitFor();
    await expect.poll(() => page.evaluate(HAS_LINES)).toBe(true);
    await inspect(page, 'pool', look);
    await using operators = await dashboard.open('/pool?range=15m', { ...look, isOperator: true });
    const { page: whole } = operators;
    const decisions = whole.getByRole('table', { name: 'Decisions' });
    await decisions.locator('summary').first().click();
    await decisions.getByText('Median launch').waitFor();
    await whole.getByRole('table', { name: 'Servers' }).scrollIntoViewIfNeeded();
    await inspect(whole, 'pool-servers', look);
    await decisions.scrollIntoViewIfNeeded();
    await decisions.evaluate('(table) => table.scrollIntoView()');
    await inspect(whole, 'pool-decisions', look);
    expect([...faults, ...operators.faults]).toEqual([]);
  });
});
