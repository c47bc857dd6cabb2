import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '#src/apps/client/client.ts';
import { startDashboard, statusOf, type Dashboard } from '#test/support/dashboard/dashboard.ts';
import { startPathNginx } from '#test/support/deploy/path-nginx.ts';
import { findNginx } from '#test/support/servers/debian-programs.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { DEV_KEY } from '#test/support/service/service.ts';

/** The service below a path of a real nginx, as deploy/README.md says, with a real browser. */

const PICTURES = fileURLToPath(new URL('../../../.tools/pictures/', import.meta.url));
const program = await findNginx();
/** Without nginx, test/support/summary.ts reports that these were left out. */
const withNginx = describe.runIf(program !== null);

withNginx('below a path', () => {
  let dashboard: Dashboard;
  let nginx: AsyncDisposable;
  /** The service's address, and that of its gateway. */
  let url: string;
  let gateway: string;
  let session: { id: string; cdp_url: string; bidi_url: string };
  beforeAll(async () => {
    const [port = 0, gatewayPort = 0] = await freePorts(2);
    url = `http://127.0.0.1:${port}/browsers`;
    gateway = `ws://127.0.0.1:${port}/browsers/gateway`;
    dashboard = await startDashboard({
      BROWSERS: 'process',
      POOL_MIN_IDLE: '0',
      POOL_MAX_IDLE: '1',
      POOL_MAX: '3',
      GATEWAY_PORT: `${gatewayPort}`,
      PUBLIC_GATEWAY_WS_URL: gateway,
      TRUSTED_PROXIES: '127.0.0.1',
    });
    nginx = await startPathNginx({
      program: program ?? '',
      port,
      api: Number(new URL(dashboard.service.apiUrl).port),
      gateway: gatewayPort,
    });
    session = (await dashboard.create({ session_name: 'below a path' })) as typeof session;
  });
  afterAll(async () => {
    await nginx?.[Symbol.asyncDispose]();
    await dashboard?.[Symbol.asyncDispose]();
  });

  it('the dashboard shows sessions live, leads to a session, and is loaded anew there', async () => {
    await using tab = await dashboard.open('/', { origin: url });
    const { page, faults } = tab;
    await statusOf(page, session.id, 'active').waitFor();
    const other = await dashboard.create({ session_name: 'made meanwhile' });
    await statusOf(page, other.id, 'active').waitFor();
    await page.screenshot({ path: join(PICTURES, 'below-a-path.png') });
    await page.getByRole('link', { name: 'below a path' }).click();
    expect(page.url()).toBe(`${url}/sessions/${session.id}`);
    await page.reload();
    await page.getByRole('button', { name: 'Show the live screen' }).click();
    const screen = page.getByRole('region', { name: 'Live screen' });
    await screen.getByText('Connected', { exact: true }).waitFor();
    await page.screenshot({ path: join(PICTURES, 'session-below-a-path.png') });
    for (const name of ['Wall', 'Hand-offs', 'Pool and queue', 'Usage', 'Keys', 'Webhooks']) {
      await page.getByRole('link', { name, exact: true }).click();
      await page.getByRole('heading', { level: 1, name }).waitFor();
    }
    await page.goBack();
    expect(page.url()).toBe(`${url}/keys`);
    await page.getByRole('link', { name: 'API', exact: true }).click();
    await page.waitForURL(`${url}/docs`);
    expect(faults).toEqual([]);
  });

  it('the dashboard stays at its host where the path has a slash too many', async () => {
    const twice = url.replace('/browsers', '//browsers');
    await using tab = await dashboard.open('/', { origin: twice });
    const { page, faults } = tab;
    await statusOf(page, session.id, 'active').waitFor();
    await page.getByRole('link', { name: 'below a path' }).click();
    await page.getByRole('button', { name: 'Show the live screen' }).waitFor();
    expect(page.url()).toBe(`${twice}/sessions/${session.id}`);
    await page.getByRole('link', { name: 'API', exact: true }).click();
    await page.waitForURL(`${twice}/docs`);
    expect(faults).toEqual([]);
  });

  it.each([
    ['/docs', 'Create a session'],
    ['/docs/events', 'A browser session, from its request to its end.'],
  ])('%s shows its document', async (path, shown) => {
    await using tab = await dashboard.open(path, { origin: url, key: null });
    const { page, faults } = tab;
    await page.getByText(shown).first().waitFor();
    await page.screenshot({ path: join(PICTURES, `${path.replaceAll('/', '-').slice(1)}.png`) });
    expect(faults).toEqual([]);
  });

  it('/docs says that the service is below the path, in its examples and trials', async () => {
    await using tab = await dashboard.open('/docs', { origin: url, key: null });
    const { page } = tab;
    await page.getByText(url, { exact: true }).first().waitFor();
    const example = page.getByText(`curl ${url}/api/sessions`).first();
    await example.scrollIntoViewIfNeeded();
    await example.waitFor();
  });

  it('the addresses of a session lead to it: by CDP, and its viewer to its screen', async () => {
    expect(session.cdp_url).toMatch(new RegExp(`^${gateway}/devtools/`));
    const browser = await chromium.connectOverCDP(session.cdp_url);
    expect(browser.contexts().length).toBe(1);
    await browser.close();
    const { viewer_url } = await createClient({ url, apiKey: DEV_KEY }).sessions.access(session.id);
    expect(viewer_url).toMatch(new RegExp(`^${gateway.replace('ws', 'http')}/vnc/`));
    await using tab = await dashboard.open('', { origin: viewer_url ?? '', key: null });
    await tab.page.locator('#status', { hasText: 'Connected' }).waitFor();
    expect(tab.faults).toEqual([]);
    const twice = viewer_url?.replace('/browsers', '//browsers') ?? '';
    await using again = await dashboard.open('', { origin: twice, key: null });
    await again.page.locator('#status', { hasText: 'Connected' }).waitFor();
    expect(again.faults).toEqual([]);
  });

  it('programs have it by its address: events, MCP, WebDriver', async () => {
    const client = createClient({ url, apiKey: DEV_KEY });
    for await (const { type } of client.sessions.events(session.id)) {
      expect(type).toBe('session.requested');
      break;
    }
    const mcp = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { authorization: `Bearer ${DEV_KEY}` } };
    await mcp.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
    expect((await mcp.listTools()).tools.length).toBeGreaterThan(0);
    await mcp.close();
    const hub = `${url.replace('//', `//key:${DEV_KEY}@`)}/wd/hub`;
    const { username, password } = new URL(hub);
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const capabilities = { alwaysMatch: { webSocketUrl: true } };
    const created = await fetch(`${url}/wd/hub/session`, {
      method: 'POST',
      headers: { authorization },
      body: JSON.stringify({ capabilities }),
    });
    const { value } = (await created.json()) as {
      value: { sessionId: string; capabilities: Record<string, unknown> };
    };
    expect(value.capabilities['webSocketUrl']).toContain(`${gateway}/`);
    expect(value.capabilities['se:cdp']).toContain(`${gateway}/`);
    const driver = `${url}/wd/hub/session/${value.sessionId}`;
    const at = await fetch(`${driver}/url`, { headers: { authorization } });
    expect(at.status).toBe(200);
    expect((await fetch(driver, { method: 'DELETE', headers: { authorization } })).status).toBe(
      200,
    );
  });
});
