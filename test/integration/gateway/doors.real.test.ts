import CDP from 'chrome-remote-interface';
import { chromium } from 'playwright-core';
import { connect } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestGateway, until } from '#test/support/gateway.fixture.ts';
import { startRealBrowsers } from '#test/support/clients/real-browser.ts';

const PAGE = 'data:text/html,<title>by another door</title>';
let browsers: Awaited<ReturnType<typeof startRealBrowsers>>;
let site: Awaited<ReturnType<typeof startTestGateway>>;
let ticket = '';

beforeAll(async () => {
  browsers = await startRealBrowsers(1);
  site = await startTestGateway();
  const [browser] = browsers.running;
  if (browser === undefined) throw new Error('no browser');
  site.directory.set('s1', { status: 'active', cdp: browser.cdp, vnc: browser.vnc });
  ticket = site.tickets.issue('cdp', 'org', 's1');
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
  await browsers[Symbol.asyncDispose]();
});

test('Puppeteer finds the browser at the gateway’s root by a header', async () => {
  const browser = await connect({ browserURL: site.http, headers: { 'X-Bss-Ticket': ticket } });
  const page = await browser.newPage();
  await page.goto(PAGE);
  expect(await page.title()).toBe('by another door');
  await page.close();
  await browser.disconnect();
});

test('Playwright finds the browser at the gateway’s root by a header and by a query', async () => {
  const headers = { Authorization: `Bearer ${ticket}` };
  for (const connecting of [
    chromium.connectOverCDP(site.http, { headers }),
    chromium.connectOverCDP(`${site.http}/?ticket=${ticket}`),
    chromium.connectOverCDP(`ws://127.0.0.1:${site.port}/devtools/browser?ticket=${ticket}`),
  ]) {
    const browser = await connecting;
    const page = await (browser.contexts()[0] ?? (await browser.newContext())).newPage();
    await page.goto(PAGE);
    expect(await page.title()).toBe('by another door');
    await page.close();
    await browser.close();
  }
});

test('chrome-remote-interface asks host and port for the protocol and its target', async () => {
  const at = {
    host: '127.0.0.1',
    port: site.port,
    // It is also called for the target's own address, which has the ticket.
    alterPath: (path: string) => (path.startsWith('/json') ? `${path}?ticket=${ticket}` : path),
  };
  expect((await CDP.Version(at)).Browser).toMatch(/^Chrome\//);
  const client = await CDP(at);
  await client.Page.enable();
  await Promise.all([client.Page.loadEventFired(), client.Page.navigate({ url: PAGE })]);
  const { result } = await client.Runtime.evaluate({ expression: 'document.title' });
  expect(result.value).toBe('by another door');
  await client.close();
});

test('a tab is opened at an address, listed, activated and closed', async () => {
  const json = `${site.http}/devtools/${ticket}/json`;
  const bare = `${site.http}/json`;
  // The page's own address may have a parameter of the ticket's name.
  const url = 'data:text/html,new?ticket=none';
  for (const opened of [
    fetch(`${json}/new?${url}`, { method: 'PUT' }),
    fetch(`${bare}/new?ticket=${ticket}&${url}`, { method: 'PUT' }),
    fetch(`${bare}/new?${url}`, { method: 'PUT', headers: { 'x-bss-ticket': ticket } }),
  ]) {
    const target = (await (await opened).json()) as Record<string, string>;
    expect(target).toMatchObject({ type: 'page', url });
    expect(target['webSocketDebuggerUrl']).toContain(ticket);
    const id = target['id'] ?? '';
    const activated = await fetch(`${bare}/activate/${id}?ticket=${ticket}`);
    expect([activated.status, await activated.text()]).toEqual([200, 'Target activated']);
    const closed = await fetch(`${json}/close/${id}`);
    expect([closed.status, await closed.text()]).toEqual([200, 'Target is closing']);
    await until(() => site.gateway.counters().open.cdp === 0, 'no connection left');
  }
  const unknown = await fetch(`${json}/close/${'A'.repeat(32)}`);
  expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: 'NOT_FOUND' }]);
});
