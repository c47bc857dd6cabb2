import { once } from 'node:events';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  type Dashboard,
  goTo,
  inspect,
  startDashboard,
} from '#test/support/dashboard/dashboard.ts';
import { eventually } from '#test/support/service/service.ts';
import { looks } from './looks.ts';

/** The page of one session, in a real Chromium on the whole service with simulated browsers. */

let dashboard: Dashboard;
/** A session that was extended and stopped. */
let ended: string;

beforeAll(async () => {
  dashboard = await startDashboard();
  ended = await active({ session_name: 'told', description: 'Buys one of everything' });
  await dashboard.service.request('POST', `/api/sessions/${ended}/extend`, { duration: '10m' });
  await dashboard.service.request('DELETE', `/api/sessions/${ended}`);
  await eventually(async () => (await statusOf(ended)) === 'stopped', 'it has stopped');
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

async function active(body: object): Promise<string> {
  const { id } = await dashboard.create(body);
  await eventually(async () => (await statusOf(id)) === 'active', 'it is active');
  return id;
}

async function statusOf(id: string): Promise<string> {
  return (await dashboard.service.request('GET', `/api/sessions/${id}`)).body.status;
}

/** Has the session's browser crash. */
async function crash(id: string): Promise<void> {
  const { body } = await dashboard.service.request('GET', `/api/sessions/${id}`);
  const client = new WebSocket(body.cdp_url);
  await once(client, 'open');
  const closed = once(client, 'close');
  client.send(JSON.stringify({ id: 1, method: 'Browser.crash' }));
  await closed;
}

const lineOf = (page: Page, type: string) => page.locator('.timeline li', { hasText: type });
const status = (page: Page, word: string) => page.locator('h1 + .status', { hasText: word });
const moment = (page: Page) => page.getByRole('slider', { name: 'Moment that the page shows' });
/** The page listens to arrow keys from the frame on that has drawn its slider. */
const untilDrawn = (page: Page) =>
  page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))');

describe('the timeline', () => {
  it('has each event with its actor and cause; a click shows payload and changes', async () => {
    await using tab = await dashboard.open(`/sessions/${ended}`);
    const { page, faults } = tab;
    await page.getByText('A user requested its stop').first().waitFor();
    await page.locator('.why', { hasText: 'This session stopped (user)' }).waitFor();
    await page.locator('.why', { hasText: 'because a user requested its stop' }).waitFor();
    const stopped = lineOf(page, 'session.stopped');
    await stopped.getByRole('link', { name: 'because of session.stop-requested' }).waitFor();
    await lineOf(page, 'ledger.slot-released').waitFor();
    await lineOf(page, 'by user dev').first().waitFor();
    await stopped.getByRole('button').click();
    await stopped.getByRole('cell', { name: 'stopping', exact: true }).waitFor();
    expect(await stopped.getByLabel('Payload').textContent()).toContain('"creditsUsed"');
    await page.getByRole('button', { name: /browser and credits/ }).click();
    await expect.poll(() => lineOf(page, 'ledger.').count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it('goes on while it is looked at, and tells the cost of each event', async () => {
    const id = await active({ session_name: 'goes-on' });
    await using tab = await dashboard.open(`/sessions/${id}`);
    const { page } = tab;
    await lineOf(page, 'session.activated').waitFor();
    await dashboard.service.request('POST', `/api/sessions/${id}/extend`, { duration: '15m' });
    await page.locator('.costs li', { hasText: '15 credits' }).waitFor();
    await page.getByRole('link', { name: 'Reserved by its extension' }).click();
    await lineOf(page, 'session.extended').getByLabel('Payload').waitFor();
    await dashboard.service.request('DELETE', `/api/sessions/${id}`);
    await status(page, 'stopped').waitFor();
    await lineOf(page, 'session.stopped').waitFor();
    await lineOf(page, 'ledger.slot-released').waitFor();
    await page.locator('.why', { hasText: 'because a user requested its stop' }).waitFor();
  });
});

it('tells the profile that its browser began with, and what became of it', async () => {
  const { request } = dashboard.service;
  const profile = (await request('POST', '/api/profiles', { name: 'shop' })).body.id;
  const row = (page: Page) => page.locator('.facts dt', { hasText: 'Profile' }).locator('+ dd');
  const saving = { profile: { id: profile, save: true } };
  const id = await active(saving);
  await using tab = await dashboard.open(`/sessions/${id}`);
  const { page } = tab;
  await expect.poll(() => row(page).textContent()).toBe(`${profile}, empty, to be saved`);
  await request('POST', `/api/sessions/${id}/profile/save`);
  await lineOf(page, `It saved version 1 of profile ${profile}`).waitFor();
  await expect.poll(() => row(page).textContent()).toBe(`${profile}, empty, saved as version 1`);
  await request('DELETE', `/api/sessions/${id}`);
  await expect.poll(() => row(page).textContent()).toBe(`${profile}, empty, saved as version 2`);
  // Until then the profile is taken.
  await status(page, 'stopped').waitFor();
  const again = await active(saving);
  await goTo(page, `${dashboard.service.apiUrl}/sessions/${again}`);
  await expect.poll(() => row(page).textContent()).toBe(`${profile}, version 2, to be saved`);
  await crash(again);
  await status(page, 'failed').waitFor();
  await expect.poll(() => row(page).textContent()).toBe(`${profile}, version 2, not saved`);
  const plain = await active({});
  await goTo(page, `${dashboard.service.apiUrl}/sessions/${plain}`);
  await lineOf(page, 'session.activated').waitFor();
  expect(await row(page).count()).toBe(0);
});

describe('a moment', () => {
  it('is chosen with arrow keys, is in the address, and ends at now', async () => {
    await using tab = await dashboard.open(`/sessions/${ended}`);
    const { page } = tab;
    await status(page, 'stopped').waitFor();
    await lineOf(page, 'session.stopped').waitFor();
    expect(await moment(page).getAttribute('aria-valuetext')).toBe('Now');
    await untilDrawn(page);
    for (const word of ['stopped', 'stopping', 'active']) {
      await page.keyboard.press('ArrowLeft');
      await status(page, word).waitFor();
    }
    expect(new URL(page.url()).searchParams.get('at')).toMatch(/^\d+$/);
    await lineOf(page, 'session.stopped').and(page.locator('.later')).waitFor();
    await page.locator('.why', { hasText: 'Last: it was extended by 10m00s' }).waitFor();
    await goTo(page, page.url());
    await status(page, 'active').waitFor();
    await moment(page).focus();
    await page.keyboard.press('ArrowRight');
    await status(page, 'stopping').waitFor();
    await page.getByRole('button', { name: 'Back to now' }).click();
    await status(page, 'stopped').waitFor();
    expect(new URL(page.url()).search).toBe('');
  });

  it('is an instant, too; before its first event the session did not exist', async () => {
    const { body } = await dashboard.service.request('GET', `/api/sessions/${ended}/history`);
    const { time } = body.events.find((event: { type: string }) => event.type.endsWith('extended'));
    await using tab = await dashboard.open(`/sessions/${ended}?at=${time}`);
    await status(tab.page, 'active').waitFor();
    await using before = await dashboard.open(`/sessions/${ended}?at=2020-01-01T00:00:00Z`);
    await before.page.getByText('did not exist at this moment').waitFor();
    await before.page.getByRole('button', { name: 'Back to now' }).first().click();
    await status(before.page, 'stopped').waitFor();
  });

  it('is chosen from an event', async () => {
    await using tab = await dashboard.open(`/sessions/${ended}`);
    const requested = lineOf(tab.page, 'session.requested').first();
    await requested.getByRole('button').first().click();
    await tab.page.getByRole('button', { name: 'Show the session after this event' }).click();
    await status(tab.page, 'creating').waitFor();
  });
});

it('extends and stops the session, and asks first', async () => {
  const id = await active({ session_name: 'steered' });
  await using tab = await dashboard.open(`/sessions/${id}`);
  const { page } = tab;
  await page.getByRole('button', { name: 'Extend by 30 min' }).click();
  await page.getByRole('heading', { name: 'Extend steered?' }).waitFor();
  await page.getByRole('button', { name: 'Extend', exact: true }).click();
  await page.locator('.costs li', { hasText: '30 credits' }).waitFor();
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
  expect(await statusOf(id)).toBe('active');
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
  await status(page, 'stopped').waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Stop', exact: true }).count()).toBe(0);
});

describe('the live screen', () => {
  it('connects, is only watched if so wished, and closes', async () => {
    const id = await active({ session_name: 'seen' });
    await using tab = await dashboard.open(`/sessions/${id}`);
    const { page, faults } = tab;
    await page.getByRole('button', { name: 'Show the live screen' }).click();
    const screen = page.getByRole('region', { name: 'Live screen' });
    await screen.getByText('Connected', { exact: true }).waitFor();
    await screen.locator('canvas').first().waitFor();
    await screen.getByRole('button', { name: 'Only watch' }).click();
    await lineOf(page, 'It was used over vnc').waitFor();
    await screen.getByRole('button', { name: 'Full screen' }).click();
    await expect
      .poll(() => page.evaluate('document.fullscreenElement?.className'))
      .toMatch('screen');
    await page.evaluate('document.exitFullscreen()');
    await screen.getByRole('button', { name: 'Close' }).click();
    await expect.poll(() => screen.count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it('is not for a viewer, who sees all else', async () => {
    const id = await active({ session_name: 'watched' });
    const key = await dashboard.keyOf('viewer');
    await using tab = await dashboard.open(`/sessions/${id}`, { key });
    const { page } = tab;
    await lineOf(page, 'session.activated').waitFor();
    await page.getByText('to drive the browser takes a member').waitFor();
    for (const name of ['Show the live screen', 'Stop', 'Extend by 30 min'])
      expect(await page.getByRole('button', { name, exact: true }).count()).toBe(0);
    expect(await page.locator('body').textContent()).not.toContain('ws://');
  });
});

it('a session of another organization is not there', async () => {
  await using tab = await dashboard.open('/sessions/ses_of_somebody_else');
  await tab.page.getByRole('alert').filter({ hasText: 'could not be read' }).waitFor();
  expect(await tab.page.locator('.timeline').count()).toBe(0);
});

it.each(looks)('%s: no finding of axe', async (look) => {
  const id = await active({ session_name: 'inspected', labels: { team: 'web' } });
  await using tab = await dashboard.open(`/sessions/${id}`, look);
  const { page, faults } = tab;
  await page.getByText('Code that drives it').click();
  await lineOf(page, 'session.activated').getByRole('button').click();
  await page.getByLabel('Payload').waitFor();
  await inspect(page, 'session', look);
  await page.getByRole('button', { name: 'Show the live screen' }).click();
  await page.getByText('Connected', { exact: true }).waitFor();
  await inspect(page, 'session-screen', look);
  await goTo(page, `${dashboard.service.apiUrl}/sessions/${ended}`);
  await lineOf(page, 'session.stopped').waitFor();
  await inspect(page, 'session-ended', look);
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  await status(page, 'stopping').waitFor();
  await inspect(page, 'session-past', look);
  expect(faults).toEqual([]);
});

it('after a kill of the service the page tells it, and goes on by itself', async () => {
  const { service } = dashboard;
  const id = await active({ session_name: 'outlives' });
  await using tab = await dashboard.open(`/sessions/${id}`);
  const { page } = tab;
  await lineOf(page, 'session.activated').waitFor();
  await service.end('SIGKILL');
  await page.getByRole('alert').filter({ hasText: 'Not live' }).waitFor();
  await service.startAgain();
  await service.request('DELETE', `/api/sessions/${id}`);
  // Its simulated browser ended with the service: either may end the session first.
  await page.locator('h1 + .status', { hasText: /stopped|failed/ }).waitFor();
  await lineOf(page, 'ledger.slot-released').waitFor();
  await expect.poll(() => page.getByRole('alert').count()).toBe(0);
});
