import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAGES } from '#src/roles/api/dashboard/pages.ts';
import { connectApi } from '#test/support/clients/api-client.ts';
import {
  type Dashboard,
  goTo,
  startDashboard,
  statusOf,
} from '#test/support/dashboard/dashboard.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';
import { eventually } from '#test/support/service/service.ts';

/** Who sees and does what: a viewer, a member, and another organization, on all pages. */

const SECRET = 'of-the-first-organization';
const ASKED = `asked-${SECRET}`;
let dashboard: Dashboard;
let log: ServiceLog;
let id: string;
let keys: Record<'viewer' | 'member' | 'stranger', string>;

beforeAll(async () => {
  dashboard = await startDashboard();
  log = await openLog(dashboard.service);
  const api = await connectApi(dashboard.service.apiUrl);
  await log.register('other', 'max', 10_000);
  keys = {
    viewer: await log.issueKey('dev', 'viewer', api),
    member: await log.issueKey('dev', 'member', api),
    stranger: await log.issueKey('other', 'owner', api),
  };
  const ended = await dashboard.create({ session_name: `ended-${SECRET}` });
  await dashboard.service.request('DELETE', `/api/sessions/${ended.id}`);
  ({ id } = await dashboard.create({ session_name: SECRET, labels: { team: SECRET } }));
  await askFor(id, ASKED);
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  await dashboard?.[Symbol.asyncDispose]();
});

const paths = () => Object.values(PAGES).map(({ path }) => path.replace(':id', id));
const authorizationOf = (key: string) => ({ authorization: `Bearer ${key}` });

/** Asks for a person to take the session, once it has a browser. */
async function askFor(session: string, instructions: string, headers: object = {}) {
  const path = `/api/sessions/${session}/handoffs`;
  await eventually(async () => {
    const asked = await dashboard.service.request('POST', path, { instructions }, headers);
    return asked.status === 201;
  }, 'a hand-off is asked for');
}

/** The other organization creates a session and asks for a person to take it. */
async function strangerAsks() {
  const headers = authorizationOf(keys.stranger);
  const body = { session_name: 'own-of-the-other' };
  const own = await dashboard.service.request('POST', '/api/sessions', body, headers);
  expect(own.status).toBeLessThan(300);
  await askFor(own.body.id, 'Own of the other.', headers);
}

/**
 * Resolves once the page knows its user's role and has asked for all it shows, but for the stream,
 * which does not end.
 */
const settle = async (page: Page) => {
  await page.locator('.brand .muted', { hasText: /./ }).waitFor();
  await page.locator('main :is(h1, h2, [role=alert])').first().waitFor();
  await expect.poll(() => page.getByText('Loading').count()).toBe(0);
};
/** What steers a session or changes anything in the organization. */
const STEERING = new RegExp(
  `^(${[
    'Extend|Stop|Select|Take|Open$|Give it back',
    'Show the live screen|Live screen of|Make an address|Add$|Remove',
    'Issue|Revoke|Drain|Undrain|Rebuild|Retry|Skip|Run an audit',
  ].join('|')})`,
);
async function offered(page: Page): Promise<string[]> {
  const names = await page.locator('main').ariaSnapshot();
  return [...names.matchAll(/(?:button|checkbox) "([^"]+)"/g)]
    .flatMap(([, name = '']) => name)
    .filter((name) => STEERING.test(name));
}

describe('a viewer', () => {
  it('sees every page that needs no more, and is offered nothing that it may not do', async () => {
    for (const path of paths()) {
      await using tab = await dashboard.open(path, { key: keys.viewer });
      await settle(tab.page);
      if (path === '/') await tab.page.locator(`[data-id="${id}"]`).waitFor();
      if (path === '/wall') await tab.page.getByRole('button', { name: `Pin ${SECRET}` }).waitFor();
      if (path === '/handoffs' || path.endsWith(id))
        await tab.page.locator('.instructions', { hasText: ASKED }).waitFor();
      expect([path, await offered(tab.page)]).toEqual([path, []]);
      if (path === '/keys') await tab.page.getByText('for the role admin').waitFor();
    }
  });

  it('sees what happens, live', async () => {
    await using tab = await dashboard.open('/', { key: keys.viewer });
    await tab.page.locator(`[data-id="${id}"]`).waitFor();
    const made = await dashboard.create({ session_name: 'made-now' });
    await statusOf(tab.page, made.id, 'active').waitFor();
    expect(tab.faults).toEqual([]);
  });
});

describe('a member', () => {
  it.each([
    ['/sessions/:id', [/^Stop$/, /^Extend by 30 min$/, /^Take$/]],
    ['/', [/^Select /]],
    ['/handoffs', [/^Take$/]],
  ])('is offered at %s what a viewer is not', async (path, names) => {
    await using tab = await dashboard.open(path.replace(':id', id), { key: keys.member });
    await settle(tab.page);
    for (const name of names)
      await expect.poll(() => offered(tab.page)).toContainEqual(expect.stringMatching(name));
  });

  it('steers: extends and stops a session, on its page and in the list', async () => {
    const made = await dashboard.create({ session_name: 'steered' });
    await using tab = await dashboard.open(`/sessions/${made.id}`, { key: keys.member });
    const { page } = tab;
    await page.getByRole('button', { name: 'Extend by 30 min' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Extend' }).click();
    await page.locator('.timeline').getByText('session.extended').waitFor();
    await goTo(page, `${dashboard.service.apiUrl}/?q=steered`);
    await page.locator(`[data-id="${made.id}"]`).getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
    await statusOf(page, made.id, 'stopped').waitFor();
    expect(tab.faults).toEqual([]);
  });

  it('is refused the keys, with the reason', async () => {
    await using tab = await dashboard.open('/keys', { key: keys.member });
    await tab.page.getByText('for the role admin').waitFor();
    expect(await offered(tab.page)).toEqual([]);
  });
});

describe('another organization', () => {
  it('sees nothing of the first on any page, not even what happens meanwhile', async () => {
    await strangerAsks();
    for (const [index, path] of paths().entries()) {
      await using tab = await dashboard.open(path, { key: keys.stranger });
      const untilWaiting = (count: number) =>
        tab.page.locator('.count', { hasText: new RegExp(`^${count} waiting$`) }).waitFor();
      await settle(tab.page);
      await untilWaiting(index + 1);
      await dashboard.create({ session_name: `during-${SECRET}` });
      await strangerAsks();
      // Every page shows this count. The stream delivers it after what went before.
      await untilWaiting(index + 2);
      if (path === '/') await tab.page.getByText('own-of-the-other').first().waitFor();
      expect([path, (await tab.page.content()).includes(SECRET)]).toEqual([path, false]);
    }
  });

  it('gets the same answer for a session of the first as for one that never was', async () => {
    const told = [];
    for (const one of [id, 'ses_never-was']) {
      await using tab = await dashboard.open(`/sessions/${one}`, { key: keys.stranger });
      await tab.page.getByRole('alert').getByText('There is no session').waitFor();
      // A busy machine's service may have been late for a moment.
      await tab.page.getByText('The service does not answer').waitFor({ state: 'hidden' });
      told.push((await tab.page.locator('main').innerText()).replaceAll(one, 'ID'));
    }
    expect(told[0]).toBe(told[1]);
  });
});

it('the operator’s pages need the operator’s token, whatever the key', async () => {
  await using without = await dashboard.open('/operator', { key: keys.stranger });
  await without.page.getByLabel('Operator’s token').waitFor();
  expect(await without.page.getByRole('table').count()).toBe(0);
  const headers = authorizationOf(keys.stranger);
  const path = '/api/operator/events';
  const { status, body } = await dashboard.service.request('GET', path, undefined, headers);
  expect([status, body.error]).toEqual([401, 'UNAUTHORIZED']);
});
