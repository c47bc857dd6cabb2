import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ApiClient, Reply } from '#test/support/clients/api-client.ts';
import { poolOf } from '#test/support/service/real-session.ts';
import { eventually } from '#test/support/service/service.ts';
import { shareService, type SharedService } from '#test/support/shared/shared-service.ts';

let shared: SharedService;
let api: ApiClient;
beforeAll(async () => {
  shared = await shareService();
  ({ owner: api } = await shared.organization());
});
afterAll(() => shared?.[Symbol.asyncDispose]());

/** How the session got its browser, by the answer's Server-Timing. */
function startOf({ status, headers }: Reply): string | undefined {
  expect(status).toBe(201);
  const timing = String(headers['server-timing']);
  expect(timing).toMatch(
    /^accept;dur=[\d.]+, browser;dur=[\d.]+(;desc=\w+)?, readable;dur=[\d.]+$/,
  );
  return /desc=(\w+)/.exec(timing)?.[1];
}

/** A create while browsers are idle. */
async function createBeside(body: object): Promise<Reply> {
  await eventually(
    async () => ((await poolOf(shared.service))['idle'] ?? 0) >= 3,
    'browsers wait for a session',
  );
  return api.create(body);
}

test('options that an idle browser can take on do not launch another', async () => {
  for (const options of [
    {},
    { idle_timeout: '5m' },
    { labels: { team: 'web' } },
    { headless: false },
    { viewport: { width: 800, height: 600 } },
    { viewport: { width: 1280, height: 800 }, labels: { size: 'default' } },
  ])
    expect([options, startOf(await createBeside(options))]).toEqual([options, 'warm']);
});

test('other options launch a browser, and the answer says cold', async () => {
  for (const options of [
    { locale: 'fr-FR' },
    { timezone: 'Europe/Rome' },
    { headless: true },
    { viewport: { width: 400, height: 600 } },
    { viewport: { width: 800, height: 600 }, timezone: 'Europe/Rome' },
  ])
    expect([options, startOf(await createBeside(options))]).toEqual([options, 'cold']);
});

test('a create that does not wait for its browser, or is a repeat, says neither', async () => {
  expect(startOf(await api.create({}, { prefer: 'respond-async' }))).toBeUndefined();
  const headers = { 'idempotency-key': 'the-same' };
  await api.create({}, headers);
  expect(startOf(await api.create({}, headers))).toBeUndefined();
});

test('a headless session can be driven, and has no screen', async () => {
  const { body } = await api.create({ headless: true });
  const cdp_url = expect.stringMatching(/^ws:/) as string;
  const none = { vnc_url: null, vnc_password: null, viewer_url: null };
  const connection = { ...none, cdp_url, access_urls: { vnc_url: null, cdp_url } };
  const active = { status: 'active', headless: true };
  expect(body).toMatchObject({ ...active, ...connection });
  expect((await api.get(`/api/sessions/${body.id}`)).body).toMatchObject({
    ...active,
    ...connection,
  });
  const access = await api.get(`/api/sessions/${body.id}/access`);
  expect([access.status, access.body]).toMatchObject([200, connection]);
  expect((await api.create({})).body).toMatchObject({ headless: false });
});
