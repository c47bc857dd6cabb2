import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect, type Browser, type Frame, type Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SessionLookup } from '#src/roles/gateway/access/session-directory.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { startRealBrowsers, VNC_PASSWORD } from '#test/support/clients/real-browser.ts';
import { note, notesOf, record } from '#test/support/clients/recording-page.ts';
import { startTestGateway } from '#test/support/gateway.fixture.ts';

/** The viewer page of shares and hand-offs, in a browser beside the session's. */

const SOON = { timeout: 60_000 };
const HOUR = 3_600_000;
const later = new Date(Date.now() + HOUR).toISOString();
const shares = [
  { id: 'watch', mode: 'view', expiresAt: later },
  { id: 'steer', mode: 'control', expiresAt: later },
] as const;

let browsers: Awaited<ReturnType<typeof startRealBrowsers>>;
let site: Awaited<ReturnType<typeof startTestGateway>>;
let person: Browser;
let driver: Browser;
let recorded: Page;
/** The same page, read beside the gateway. */
let beside: Page;
let active: SessionLookup;
let allowed: string[] = [];

beforeAll(async () => {
  browsers = await startRealBrowsers(2);
  site = await startTestGateway({ allowedOrigins: async () => allowed });
  const [watched, watching] = browsers.running;
  if (watched === undefined || watching === undefined) throw new Error('no browsers');
  active = { status: 'active', cdp: watched.cdp, vnc: watched.vnc, shares };
  site.directory.set('s1', active);
  person = await connectTo(watching);
  driver = await connect({ browserWSEndpoint: site.cdpUrl('s1'), defaultViewport: null });
  const [page] = await driver.pages();
  if (page === undefined) throw new Error('the session has no page');
  recorded = page;
  await record(recorded);
  const [same] = await (await connectTo(watched)).pages();
  if (same === undefined) throw new Error('the session has no page');
  beside = same;
});
afterAll(async () => {
  await driver.disconnect();
  await beside.browser().disconnect();
  await person.disconnect();
  await site[Symbol.asyncDispose]();
  await browsers[Symbol.asyncDispose]();
});

function connectTo({ cdp: { host, port, path } }: RunningBrowser): Promise<Browser> {
  const browserWSEndpoint = `ws://${host}:${port}${path}`;
  return connect({ browserWSEndpoint, defaultViewport: null });
}
function addressOf(id: string, kind: 'share' | 'handoff' = 'share'): string {
  const grant = { kind, id };
  const ticket = site.tickets.issue('vnc', 'org', 's1', { epoch: 0, holder: null, grant });
  return `${site.http}/vnc/${ticket}/#password=${VNC_PASSWORD}`;
}
async function visit(url: string): Promise<Page> {
  const page = await person.newPage();
  await page.goto(url);
  await page.waitForSelector('body[data-state=connected]', SOON);
  return page;
}
async function press(page: Page, key: string): Promise<void> {
  await page.bringToFront();
  await page.keyboard.press(key as 'a');
}
const isHidden = (page: Page, id: string) =>
  page.evaluate(`document.getElementById('${id}').hidden`);
const titleOf = (page: Page) => page.evaluate(`document.getElementById('title').textContent`);

test('a share of mode view has no buttons that steer, and its keys do not arrive', async () => {
  const watching = await visit(addressOf('watch'));
  const steering = await visit(addressOf('steer'));
  for (const id of ['view-only', 'paste', 'copy']) expect(await isHidden(watching, id)).toBe(true);
  expect(await isHidden(steering, 'view-only')).toBe(false);
  await press(watching, 'v');
  await press(steering, 's');
  await expect.poll(() => notesOf(recorded), SOON).toContain('s');
  expect(await notesOf(recorded)).not.toContain('v');

  site.directory.set('s1', { ...active, shares: [] });
  site.gateway.closeGrant('org', 's1', { kind: 'share', id: 'watch' });
  await watching.waitForSelector('body[data-state=ended]', SOON);
  expect(await titleOf(watching)).toBe('This link is no longer valid');
  await watching.reload();
  await watching.waitForSelector('body[data-state=ended]', SOON);
  expect(await titleOf(watching)).toBe('This link is no longer valid');
  site.directory.set('s1', active);
  await watching.close();
  await steering.close();
});

test('a page that is closed says why, and not what becomes of a text that was on its way', async () => {
  const page = await person.newPage();
  // The one timer of five seconds says that a copied text does not come.
  await page.evaluateOnNewDocument(`{
    const { setTimeout: set, clearTimeout: clear } = window;
    window.due = new Set();
    window.setTimeout = (run, ms, ...given) => {
      const id = set(run, ms, ...given);
      if (ms === 5000) due.add(id);
      return id;
    };
    window.clearTimeout = (id) => { due.delete(id); clear(id); };
  }`);
  await page.goto(addressOf('steer'));
  await page.waitForSelector('body[data-state=connected]', SOON);
  await page.evaluate(`import('/viewer/novnc/core/rfb.js').then(({ default: { messages } }) => {
    const socket = { sQpush8() {}, sQpush32() {}, sQpushBytes() {}, flush() {} };
    messages.extendedClipboardRequest(socket, []);
  })`);
  expect(await page.evaluate('due.size')).toBe(1);
  site.gateway.closeGrant('org', 's1', { kind: 'share', id: 'steer' });
  await page.waitForSelector('body[data-state=ended]', SOON);
  expect(await page.evaluate('due.size')).toBe(0);
  await page.close();
});

test('the page of a hand-off steers while automation waits, and says when it is over', async () => {
  const handoff = { id: 'h1', status: 'taken', expiresAt: later } as const;
  site.directory.set('s1', { ...active, handoff });
  const hold = { handoffId: 'h1', untilMs: Date.parse(later) };
  site.gateway.hold('org', 's1', hold, 1);
  const waiting = note(recorded, 'automation');
  const page = await visit(addressOf('h1', 'handoff'));
  await press(page, 'h');
  await expect.poll(() => notesOf(beside), SOON).toContain('h');
  expect(await notesOf(beside)).not.toContain('automation');
  site.directory.set('s1', { ...active, handoff: { ...handoff, status: 'completed' } });
  site.gateway.closeGrant('org', 's1', { kind: 'handoff', id: 'h1' });
  site.gateway.hold('org', 's1', null, 2);
  await page.waitForSelector('body[data-state=ended]', SOON);
  expect(await titleOf(page)).toBe('This link is no longer valid');
  await waiting;
  expect((await notesOf(recorded)).slice(-2)).toEqual(['h', 'automation']);
  await page.close();
});

test('the page of a share is shown in frames of allowed origins alone', async () => {
  await using host = await startHost();
  const framed = async (address: string): Promise<string | undefined> => {
    const page = await person.newPage();
    await page.goto(`${host.origin}/?${encodeURIComponent(address)}`);
    await page.waitForFunction(`window.isLoaded`, SOON);
    const frame = page.frames().find((one: Frame) => one.parentFrame() !== null);
    const url = frame?.url();
    if (url?.startsWith('http')) await frame?.waitForSelector('body[data-state=connected]', SOON);
    await page.close();
    return url?.split(':')[0];
  };
  expect(await framed(addressOf('watch'))).toBe('chrome-error');
  allowed = ['https://app.example.com', host.origin];
  expect(await framed(addressOf('watch'))).toBe('http');
  const own = `${site.http}/vnc/${site.tickets.issue('vnc', 'org', 's1')}/`;
  expect(await framed(own)).toBe('chrome-error');
});

/** A site that shows the address in its query in a frame. */
async function startHost() {
  const server = createServer((request, response) => {
    const address = decodeURIComponent(request.url?.split('?')[1] ?? '');
    response
      .setHeader('content-type', 'text/html')
      .end(
        `<script>addEventListener('load', () => { isLoaded = true; })</script>` +
          `<iframe src="${address}" width="800" height="600"></iframe>`,
      );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
