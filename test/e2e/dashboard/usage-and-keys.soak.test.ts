import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { egressTraffic } from '#test/support/examples.ts';
import { openLog } from '#test/support/service/service-log.ts';
import {
  type Dashboard,
  goTo,
  inspect,
  startDashboard,
} from '#test/support/dashboard/dashboard.ts';
import { looks } from './looks.ts';

/** What was used, and who may use it: the pages Usage and Keys in a real Chromium. */

let dashboard: Dashboard;

beforeAll(async () => {
  dashboard = await startDashboard();
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

describe('usage', () => {
  it('teaches while there is none, then shows a session as soon as it is billed', async () => {
    await using tab = await dashboard.open('/usage');
    const { page } = tab;
    await page.getByRole('heading', { name: 'No session was billed' }).waitFor();
    const { id } = await dashboard.create({ session_name: 'billed-one' });
    await dashboard.service.request('DELETE', `/api/sessions/${id}`);
    const line = page.getByRole('row').filter({ hasText: 'billed-one' });
    await line.getByRole('link', { name: 'slot released' }).waitFor();
    await page.locator('.days li').waitFor();
    const link = await line.getByRole('link', { name: 'billed-one' }).getAttribute('href');
    expect(link).toBe(`${dashboard.service.apiUrl}/sessions/${id}`);
    expect(tab.faults).toEqual([]);
  });

  it('shows what browsers with egress rules sent, received and were refused', async () => {
    await using tab = await dashboard.open('/usage');
    await using log = await openLog(dashboard.service);
    const { id } = await dashboard.create({ session_name: 'with-rules', egress: {} });
    const identity = { organizationId: 'dev', id };
    const record = { type: 'RecordEgress', traffic: egressTraffic, now: Date.now() } as const;
    const limits = { concurrentSessions: 100 };
    const context = createCommandContext(log.eventStore, Date.now);
    await handleSessionCommand(context, identity, record, newMetadata('test'), limits);
    await dashboard.service.request('DELETE', `/api/sessions/${id}`);
    const line = tab.page.getByRole('row').filter({ hasText: 'with-rules' });
    const text = '4.1 kB out, 91.0 kB in, 2 refused';
    await line.getByText(text).waitFor();
    await tab.page.locator('.totals').getByText(text).waitFor();
    expect(tab.faults).toEqual([]);
  });

  it('has its range in the address', async () => {
    await using tab = await dashboard.open('/usage?from=2026-01-01&to=2026-01-05');
    const { page } = tab;
    await page.getByRole('heading', { name: 'No session was billed' }).waitFor();
    await page.getByLabel('From').fill('2026-01-03');
    await expect.poll(() => page.url()).toContain('from=2026-01-03');
    expect(await page.locator('pre').last().textContent()).toContain('from=2026-01-03');
  });
});

describe('keys', () => {
  it('are shown once when issued, and revoked after a question', async () => {
    await using tab = await dashboard.open('/keys');
    const { page } = tab;
    await page.getByLabel('Name of its user').fill('robot');
    await page.getByLabel('Role').selectOption('viewer');
    await page.getByRole('button', { name: 'Issue a key' }).click();
    const shown = page.getByRole('region', { name: 'The new key' });
    const key = (await shown.locator('pre').textContent()) ?? '';
    const authorization = { authorization: `Bearer ${key}` };
    const asked = () =>
      dashboard.service.request('GET', '/api/organization', undefined, authorization);
    expect((await asked()).body.organization_role).toBe('viewer');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await expect.poll(() => page.content()).not.toContain(key);
    const row = page.getByRole('row').filter({ hasText: 'robot' });
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('heading', { name: 'Revoke the key of robot?' }).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await expect.poll(() => row.count()).toBe(0);
    expect((await asked()).status).toBe(401);
    expect(tab.faults).toEqual([]);
  });

  it('of owners are not offered to an admin, and none to a member', async () => {
    const [admin, member] = [await dashboard.keyOf('admin'), await dashboard.keyOf('member')];
    await using first = await dashboard.open('/keys', { key: admin });
    await first.page.getByRole('row').filter({ hasText: 'for owners' }).first().waitFor();
    expect(await first.page.locator('option').count()).toBe(3);
    await using second = await dashboard.open('/keys', { key: member });
    await second.page.getByRole('heading', { name: 'for the role admin' }).waitFor();
    expect(await second.page.getByRole('link', { name: 'Keys' }).count()).toBe(0);
  });
});

it.each(looks)('%s: no finding of axe on usage and keys', async (look) => {
  await using tab = await dashboard.open('/usage', look);
  const { page, faults } = tab;
  await page.locator('.days li').waitFor();
  await page.getByRole('heading', { name: 'By session' }).waitFor();
  await inspect(page, 'usage', look);
  await goTo(page, `${dashboard.service.apiUrl}/keys`);
  await page.getByRole('table', { name: 'Keys' }).waitFor();
  await inspect(page, 'keys', look);
  expect(faults).toEqual([]);
});
