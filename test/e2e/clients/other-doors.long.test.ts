import CDP from 'chrome-remote-interface';
import { Builder } from 'selenium-webdriver';
import { ServiceBuilder } from 'selenium-webdriver/chrome.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, type Client, type LiveSession } from '#src/apps/client/client.ts';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { installPython, type Python } from '#test/support/clients/python-clients.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { DEV_KEY, startService, type RunningService } from '#test/support/service/service.ts';

/** Clients that take a host and a port alone, or build paths of their own, with real browsers. */

const PAGE = 'data:text/html,<title>by another door</title>';
const NODRIVER = `
import asyncio, sys, nodriver
async def main():
    host, port, page = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    browser = await nodriver.start(host=host, port=port)
    for new in (False, True):
        tab = await browser.get(page, new_tab=new)
        # nodriver waits for no page of a new tab.
        while not (title := await tab.evaluate('document.title')):
            await asyncio.sleep(0.05)
        print(title, flush=True)
nodriver.loop().run_until_complete(main())
`;
const PYDOLL = `
import asyncio, sys
from pydoll.browser.chromium import Chrome
async def main():
    browser = Chrome()
    tab = await browser.connect(sys.argv[1])
    await tab.go_to(sys.argv[2])
    print(await tab.title(), flush=True)
    second = await browser.new_tab(sys.argv[2])
    print(await second.title(), flush=True)
asyncio.run(main())
`;

let folder: Awaited<ReturnType<typeof scratchDir>>;
let service: RunningService;
let client: Client;
let session: LiveSession;
let python: Python | null;
beforeAll(async () => {
  folder = await scratchDir();
  python = await installPython(folder.path, ['nodriver==0.50.99', 'pydoll-python==3.0.0']);
  const ports = await freePorts(2);
  const range = `${Math.min(...ports)}-${Math.max(...ports)}`;
  service = await startService({ BROWSERS: 'process', DEBUGGER_PORTS: range });
  client = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
  session = await client.sessions.create({ duration: '1h' });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** Host and port of the session's own. */
async function address(): Promise<{ host: string; port: string }> {
  const { debugger_address: at } = await session.openDebuggerAddress();
  const [host = '', port = ''] = at.split(':');
  return { host, port };
}

test('nodriver drives a session by a host and a port', async () => {
  if (python === null) return expect.soft(python).toBeNull();
  const { host, port } = await address();
  const titles = await python(NODRIVER, host, port, PAGE);
  expect(titles.split('\n')).toEqual(['by another door', 'by another door']);
});

test('pydoll drives a session by a WebSocket address with the ticket in its query', async () => {
  if (python === null) return expect.soft(python).toBeNull();
  const { cdp_url: url } = await session.access();
  const byQuery = url.replace(/\/devtools\/browser\/(.*)$/, '/devtools/browser?ticket=$1');
  const titles = await python(PYDOLL, byQuery, PAGE);
  expect(titles.split('\n')).toEqual(['by another door', 'by another door']);
});

test('chromedriver attaches by debuggerAddress, and its quit leaves the session active', async () => {
  const { chromedriver } = await ensurePrograms(['chromedriver'], () => undefined);
  const { host, port } = await address();
  const driver = await new Builder()
    .withCapabilities({
      browserName: 'chrome',
      'goog:chromeOptions': { debuggerAddress: `${host}:${port}` },
    })
    .setChromeService(new ServiceBuilder(chromedriver))
    .build();
  await driver.get(PAGE);
  expect(await driver.getTitle()).toBe('by another door');
  await driver.switchTo().newWindow('tab');
  await driver.get(PAGE);
  expect(await driver.getTitle()).toBe('by another door');
  await driver.quit();
  const left = await client.sessions.get(session.id);
  expect(left.status).toBe('active');
});

test('chrome-remote-interface drives a session by a host and a port', async () => {
  const { host, port } = await address();
  const driver = await CDP({ host, port: Number(port) });
  await driver.Page.enable();
  await Promise.all([driver.Page.loadEventFired(), driver.Page.navigate({ url: PAGE })]);
  const { result } = await driver.Runtime.evaluate({ expression: 'document.title' });
  expect(result.value).toBe('by another door');
  await driver.close();
  expect(await session.closeDebuggerAddress()).toMatchObject({ closed: 1 });
  await session.stop();
});
