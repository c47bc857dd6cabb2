import { chromium } from 'playwright-core';
import { connect, type Browser } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSocket, startTestGateway, until } from '#test/support/gateway.fixture.ts';
import { startRealBrowsers } from '#test/support/clients/real-browser.ts';

const PAGE = 'data:text/html,<title>through the gateway</title>';
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
