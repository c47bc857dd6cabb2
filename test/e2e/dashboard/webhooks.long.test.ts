import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  inspect,
  LOOKS,
  startDashboard,
  type Dashboard,
} from '#test/support/dashboard/dashboard.ts';
import { eventually } from '#test/support/service/service.ts';
import { startReceiver } from '#test/support/webhooks/receiver.ts';

/** The page of webhooks, and the line about one that was given up, in a real Chromium. */

let dashboard: Dashboard;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let secret = '';
let isGone = true;

beforeAll(async () => {
  dashboard = await startDashboard({ WEBHOOKS_ALLOW_PRIVATE: 'yes' });
  receiver = await startReceiver(
    () => secret,
    (_got, _count, reply) => void reply.writeHead(isGone ? 410 : 204).end(),
  );
});
afterAll(async () => {
  await receiver?.[Symbol.asyncDispose]();
  await dashboard?.[Symbol.asyncDispose]();
});

it('says how to create one, then that it was given up, and enables it again', async () => {
  await using tab = await dashboard.open('/webhooks');
  const { page } = tab;
  await page.getByRole('heading', { name: 'There is no webhook yet' }).waitFor();
  const asked = { url: receiver.url, types: ['session.requested', 'session.stopped'] };
  const { status, body } = await dashboard.service.request('POST', '/api/webhooks', asked);
  expect(status).toBe(201);
  secret = body.secret as string;
  await dashboard.create({ session_name: 'for-the-webhook' });
  await page.getByText('Disabled: its URL is gone (answered 410 Gone)').waitFor();
  await page.getByText('gone (410)').waitFor();

  await using other = await dashboard.open('/');
  await other.page.getByText('gets no events any more').waitFor();
  const member = await dashboard.keyOf('member');
  await using seen = await dashboard.open('/', { key: member });
  await seen.page.getByRole('link', { name: 'for-the-webhook' }).waitFor();
  expect(await seen.page.getByText('gets no events any more').count()).toBe(0);
  for (const look of LOOKS) {
    await using looked = await dashboard.open('/webhooks', look);
    await looked.page.getByText('Disabled: its URL is gone').waitFor();
    await inspect(looked.page, 'webhooks', look);
    expect(looked.faults).toEqual([]);
  }

  isGone = false;
  await page.getByRole('button', { name: /^Enable/ }).click();
  await page.getByText('delivered (204)').waitFor();
  expect(await page.getByText(/^Sends/).count()).toBe(1);
  await eventually(() => receiver.received.length === 2, 'the event has arrived after all');
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
  expect(tab.faults).toEqual([]);
});
