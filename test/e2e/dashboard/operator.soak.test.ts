import { connect } from '@nats-io/transport-node';
import { jetstream } from '@nats-io/jetstream';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { deadLetterSubject } from '#events/subjects.ts';
import {
  type Dashboard,
  goTo,
  inspect,
  OPERATOR_TOKEN,
  startDashboard,
} from '#test/support/dashboard/dashboard.ts';
import { DEV_KEY } from '#test/support/service/service.ts';
import { looks } from './looks.ts';

/** The operator's pages in a real Chromium, on the whole service with simulated browsers. */

let dashboard: Dashboard;
beforeAll(async () => {
  dashboard = await startDashboard();
  await dashboard.create({ session_name: 'one-that-counts' });
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

const BY = 'servers:v2';
const OPERATOR = { isOperator: true };
const rowOf = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text });
const shownParts = ['organizations', 'events', 'read-models', 'dead-letters', 'audits'] as const;

/** As a read model records an event that it could not handle. */
async function addDeadLetter(sequence: number, reason = 'its data does not fit the schema') {
  const { host, username: user, password: pass } = new URL(dashboard.service.runtime.nats_url);
  const connection = await connect({ servers: host, user, pass });
  const at = new Date().toISOString();
  const record = { by: BY, sequence, subject: 'fleet.server.gone.joined', reason };
  const text = JSON.stringify({ ...record, at, skippedBy: null });
  await jetstream(connection).publish(deadLetterSubject(BY, sequence), text);
  await connection.close();
}

describe('the operator signs in', () => {
  it('by the address that the start prints, which then holds no secret', async () => {
    const secrets = `#key=${DEV_KEY}&operator=${OPERATOR_TOKEN}`;
    await using tab = await dashboard.open(`/operator${secrets}`, { key: null });
    const { page, faults } = tab;
    await rowOf(page, 'Development').waitFor();
    expect(page.url()).toBe(`${dashboard.service.apiUrl}/operator`);
    expect(faults).toEqual([]);
  });

  it('by the token, and ends that without ending the session of the key', async () => {
    await using tab = await dashboard.open('/operator');
    const { page } = tab;
    await page.getByLabel('Operator’s token').fill(OPERATOR_TOKEN);
    await page.getByRole('button', { name: 'Go on' }).click();
    await rowOf(page, 'Development').waitFor();
    await page.getByRole('button', { name: 'Forget the operator’s token' }).click();
    await page.getByLabel('Operator’s token').waitFor();
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  });
});

test('organizations are found by a part of their name, and the address holds the search', async () => {
  await using tab = await dashboard.open('/operator', OPERATOR);
  const { page } = tab;
  await rowOf(page, 'Development').waitFor();
  await rowOf(page, 'Development')
    .getByRole('link', { name: /^1 of \d/ })
    .waitFor();
  await page.getByLabel('Search by name or id').fill('nothing-like-it');
  await page.getByRole('heading', { name: 'No organization matches' }).waitFor();
  expect(new URL(page.url()).search).toBe('?q=nothing-like-it');
  await page.getByLabel('Search by name or id').fill('DEVELOP');
  await rowOf(page, 'Development').waitFor();
});

describe('events', () => {
  it('are those that made a number, and lead to their session at that moment', async () => {
    await using tab = await dashboard.open('/operator', OPERATOR);
    const { page } = tab;
    await rowOf(page, 'Development').getByRole('link', { name: '120', exact: true }).click();
    await rowOf(page, 'A slot and 120 credits were reserved').waitFor();
    const isChosen = page.getByRole('button', { name: 'credits', exact: true, pressed: true });
    await isChosen.waitFor();
    await page.getByRole('button', { name: 'sessions', exact: true }).click();
    const requested = rowOf(page, 'Session "one-that-counts" was requested');
    await requested.getByRole('link', { name: /^ses_/ }).click();
    await page.getByRole('heading', { name: 'one-that-counts' }).waitFor();
    expect(page.url()).toMatch(/\?at=\d+$/);
  });

  it('of another kind are selected without what that kind has not', async () => {
    await using tab = await dashboard.open(
      '/operator?tab=events&kind=ledger&organization=dev',
      OPERATOR,
    );
    const { page } = tab;
    await rowOf(page, 'A slot and 120 credits were reserved').waitFor();
    await page.getByRole('button', { name: 'servers', exact: true }).click();
    await page.getByRole('link', { name: /^srv_/ }).first().waitFor();
    expect(await rowOf(page, 'A slot and 120 credits were reserved').count()).toBe(0);
    expect(tab.faults).toEqual([]);
  });

  it('older ones follow on a click, also after a page without a match', async () => {
    await using tab = await dashboard.open('/operator', OPERATOR);
    const { page } = tab;
    await rowOf(page, 'Development').waitFor();
    const asked: (string | null)[] = [];
    await page.route('**/api/operator/events?*', (route) => {
      asked.push(new URL(route.request().url()).searchParams.get('before'));
      return asked.length === 1
        ? route.fulfill({ json: { events: [], next: '4' } })
        : route.continue();
    });
    await goTo(page, `${dashboard.service.apiUrl}/operator?tab=events&at=9`);
    await page.getByText('Older ones may match.').waitFor();
    await page.getByRole('button', { name: 'Older events' }).click();
    await page.getByRole('link', { name: '3', exact: true }).waitFor();
    expect(await page.getByRole('table').getByRole('row').count()).toBe(4);
    expect(asked).toEqual(['10', '4']);
  });

  it('end at the moment of the address', async () => {
    await using tab = await dashboard.open('/operator?tab=events&at=3', OPERATOR);
    const { page } = tab;
    await page.getByRole('link', { name: '3', exact: true }).waitFor();
    expect(await page.getByRole('table').getByRole('row').count()).toBe(4);
    await page.getByRole('button', { name: 'Newest' }).click();
    await rowOf(page, 'one-that-counts').waitFor();
  });
});

test('a read model is rebuilt after a question, and the page tells how it ended', async () => {
  await using tab = await dashboard.open('/operator?tab=read-models', OPERATOR);
  const { page } = tab;
  await rowOf(page, 'session-view').getByText('In use').waitFor();
  const rebuild = page.getByRole('button', { name: 'Rebuild session-view' });
  await rebuild.click();
  await page.getByRole('heading', { name: 'Rebuild session-view?' }).waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
  expect(await page.getByText('The rebuild of').count()).toBe(0);
  await rebuild.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rebuild' }).click();
  await page.getByText(/The rebuild of session-view ended/).waitFor();
});

describe('a dead letter', () => {
  it('is retried, and the page tells that it still fails', async () => {
    await addDeadLetter(900_001);
    await using tab = await dashboard.open('/operator?tab=dead-letters', OPERATOR);
    const { page } = tab;
    await rowOf(page, 'event 900001').getByText(BY).waitFor();
    await page.getByRole('button', { name: 'Retry event 900001' }).click();
    await page.getByText('Event 900001 still fails, and stays here: it cannot be read').waitFor();
    await rowOf(page, 'event 900001').getByRole('cell', { name: '2', exact: true }).waitFor();
  });

  it('is skipped with a reason, never without', async () => {
    await addDeadLetter(900_002);
    await using tab = await dashboard.open('/operator?tab=dead-letters', OPERATOR);
    const { page } = tab;
    await page.getByRole('button', { name: 'Skip event 900002' }).click();
    await page.getByRole('button', { name: 'Skip for good' }).click();
    await page.getByRole('alert').filter({ hasText: 'A reason is needed' }).waitFor();
    await page.getByLabel('Reason, kept with the decision').fill('a test event');
    await page.getByLabel('Your name').fill('ada');
    await page.getByRole('button', { name: 'Skip for good' }).click();
    await page.getByText('Event 900002 is left out for good').waitFor();
    await expect.poll(() => rowOf(page, 'event 900002').count()).toBe(0);
    await expect
      .poll(() => dashboard.service.output())
      .toMatch(/"actor":"operator:ada".*"skipped_for":"a test event".*"dead letter skipped"/);
  });
});

test('an audit is run, and its verdict is in words', async () => {
  await using tab = await dashboard.open('/operator?tab=audits', OPERATOR);
  const { page } = tab;
  await page.getByRole('heading', { name: 'No audit has run yet' }).waitFor();
  await page.getByRole('button', { name: 'Run an audit' }).click();
  await page.getByText(/1 ledger: each agrees with its sessions/).waitFor();
  await rowOf(page, 'dev').getByText('Agrees').waitFor();
  await page.getByText('Nothing is archived yet').waitFor();
});

test('the page shows now, and says that at a moment of the past', async () => {
  await using tab = await dashboard.open('/operator?at=7', OPERATOR);
  await tab.page.getByText('This part shows now').waitFor();
});

it.each(looks)('%s: no finding of axe on any part', async (look) => {
  await addDeadLetter(
    900_003,
    `its data does not fit the schema: ${'/data/x must be a number; '.repeat(40)}`,
  );
  await using tab = await dashboard.open('/operator', { ...look, ...OPERATOR });
  const { page, faults } = tab;
  await fetch(`${dashboard.service.apiUrl}/api/operator/audits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  for (const part of shownParts) {
    await goTo(page, `${dashboard.service.apiUrl}/operator?tab=${part}`);
    await page.getByRole('table').first().waitFor();
    await inspect(page, `operator-${part}`, look);
  }
  await goTo(page, `${dashboard.service.apiUrl}/operator?tab=dead-letters`);
  await page.getByRole('button', { name: 'Skip event 900003' }).click();
  await page.getByRole('button', { name: 'Skip for good' }).click();
  await page.getByRole('alert').waitFor();
  await inspect(page, 'operator-skip', look);
  expect(faults).toEqual([]);
});
