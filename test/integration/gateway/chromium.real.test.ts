import { WebSocket } from 'ws';
import { chromium } from 'playwright-core';
import { connect, type Browser } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSocket, startTestGateway, until } from '#test/support/gateway.fixture.ts';
import { startRealBrowsers } from '#test/support/clients/real-browser.ts';

const PAGE = 'data:text/html,<title>through the gateway</title>';
/** No page: the browser downloads it. */
const FILE = 'data:application/octet-stream,bytes';
const LINK = `data:text/html,<a download="report.txt" href="${FILE}">get</a>`;
let browsers: Awaited<ReturnType<typeof startRealBrowsers>>;
let site: Awaited<ReturnType<typeof startTestGateway>>;
/** Clients that discover the browser over HTTP. */
let httpUrl = '';

beforeAll(async () => {
  browsers = await startRealBrowsers(1);
  site = await startTestGateway();
  const [browser] = browsers.running;
  if (browser === undefined) throw new Error('no browser');
  site.directory.set('s1', { status: 'active', cdp: browser.cdp, vnc: browser.vnc });
  httpUrl = `${site.http}/devtools/${site.tickets.issue('cdp', 'org', 's1')}`;
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
  await browsers[Symbol.asyncDispose]();
});

test('Puppeteer drives the browser by its WebSocket address', async () => {
  await title(await connect({ browserWSEndpoint: site.cdpUrl('s1') }));
});

test('Puppeteer drives the browser by its HTTP address', async () => {
  await title(await connect({ browserURL: httpUrl }));
});

test('Playwright drives the browser by its WebSocket and by its HTTP address', async () => {
  for (const url of [site.cdpUrl('s1'), httpUrl, site.cdpUrl('s1').replace('ws:', 'http:')]) {
    const browser = await chromium.connectOverCDP(url);
    const page = await (browser.contexts()[0] ?? (await browser.newContext())).newPage();
    await page.goto(PAGE);
    expect(await page.title()).toBe('through the gateway');
    await page.close();
    await browser.close();
  }
  await until(() => site.gateway.counters().open.cdp === 0, 'all closed');
});

test('DevTools documents have only addresses of the gateway', async () => {
  const ticket = site.tickets.issue('cdp', 'org', 's1');
  const ws = site.http.replace('http', 'ws');
  const version = (await (await fetch(`${httpUrl}/json/version`)).json()) as Record<string, string>;
  expect(version['webSocketDebuggerUrl']).toBe(site.cdpUrl('s1'));
  expect(version['Browser']).toMatch(/^Chrome\//);

  const list = (await (await fetch(`${httpUrl}/json/list/`)).json()) as Record<string, string>[];
  expect(await (await fetch(`${httpUrl}/json`)).json()).toEqual(list);
  for (const target of list) {
    const url = `${ws}/devtools/page/${ticket}/${target['id']}`;
    expect(target['webSocketDebuggerUrl']).toBe(url);
    expect(target['devtoolsFrontendUrl']).toMatch(/\?ws=127\.0\.0\.1:/);
    expect(target['devtoolsFrontendUrl']?.split('?ws=')[1]).toBe(url.replace('ws://', ''));
  }
  const port = String(browsers.running[0]?.cdp.port);
  expect(JSON.stringify([version, list])).not.toContain(port);

  const protocol = (await (await fetch(`${httpUrl}/json/protocol`)).json()) as {
    domains: object[];
  };
  expect(protocol.domains.length).toBeGreaterThan(30);
});

test('a page’s own address from the list takes commands', async () => {
  const list = (await (await fetch(`${httpUrl}/json/list`)).json()) as Record<string, string>[];
  const page = list.find(({ type }) => type === 'page');
  const client = await openSocket(page?.['webSocketDebuggerUrl'] ?? '');
  client.socket.send('{"id":1,"method":"Runtime.evaluate","params":{"expression":"6*7"}}');
  await until(() => client.messages.length > 0, 'the answer');
  expect(JSON.parse(String(client.messages[0]))).toMatchObject({
    result: { result: { value: 42 } },
  });
  client.socket.close();
  await client.closed;
});

test('Playwright downloads to the session’s folder, in each context, and not to its own', async () => {
  const browser = await chromium.connectOverCDP(site.cdpUrl('s1'));
  for (const context of [browser.contexts()[0], await browser.newContext()]) {
    const page = await context?.newPage();
    await page?.goto(LINK);
    const [download] = await Promise.all([page?.waitForEvent('download'), page?.click('a')]);
    expect(download?.suggestedFilename()).toBe('report.txt');
    expect(await download?.failure()).toBeNull();
    await page?.close();
  }
  await browser.close();
});

test('a client that compresses what it sends downloads to the session’s folder, too', async () => {
  const socket = new WebSocket(site.cdpUrl('s1'), { perMessageDeflate: { threshold: 0 } });
  const messages: string[] = [];
  socket.on('message', (data: Buffer) => messages.push(data.toString()));
  await new Promise((resolve) => socket.once('open', resolve));
  expect(socket.extensions).toBe('permessage-deflate');
  const params = { behavior: 'allow', downloadPath: '/nowhere', eventsEnabled: true };
  // A client that compresses with what it has sent before would refer to the first.
  for (const id of [1, 2])
    socket.send(JSON.stringify({ id, method: 'Browser.setDownloadBehavior', params }));
  socket.send(JSON.stringify({ id: 3, method: 'Target.createTarget', params: { url: FILE } }));
  const completed = () => messages.find((text) => text.includes('"completed"'));
  await until(() => completed() !== undefined, 'the download');
  expect(completed()).toMatch(/"filePath":"downloads\/[-0-9a-f]{36}"/);
  socket.close();
  await until(() => site.gateway.counters().open.cdp === 0, 'all closed');
});

test('the session’s end closes a driver’s connection', async () => {
  const browser = await connect({ browserWSEndpoint: site.cdpUrl('s1') });
  const gone = new Promise((resolve) => browser.once('disconnected', resolve));
  expect(site.gateway.closeSession('org', 's1', 'user')).toBe(1);
  await gone;
});

async function title(browser: Browser): Promise<void> {
  const page = await browser.newPage();
  await page.goto(PAGE);
  expect(await page.title()).toBe('through the gateway');
  await page.close();
  await browser.disconnect();
  await until(() => site.gateway.counters().open.cdp === 0, 'all closed');
}
