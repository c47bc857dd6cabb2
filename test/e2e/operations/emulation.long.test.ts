import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect, type Browser, type Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { permissionNames } from '#src/roles/api/schemas/emulation.ts';
import { hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { startRealService, type CreatedSession } from '#test/support/service/real-session.ts';

/** What a session's browser pretends to be, as its pages and the sites they visit see it. */

const AGENT = 'Robot/1.0 (+https://robot.test) like Gecko';
const ZURICH = { latitude: 47.3769, longitude: 8.5417, accuracy: 25 };
const ASKED = {
  geolocation: ZURICH,
  user_agent: AGENT,
  permissions: ['notifications', 'geolocation', 'clipboard-read'],
};
/** In the words of a page: where it is, whether it may, and who it is. */
const SEES = `(async () => {
  const place = await new Promise((give) => navigator.geolocation.getCurrentPosition(
    ({ coords: { latitude, longitude, accuracy } }) => give({ latitude, longitude, accuracy }),
    ({ message }) => give(message),
    { timeout: 20_000 },
  ));
  const stateOf = async (name) => (await navigator.permissions.query({ name })).state;
  return {
    place,
    agent: navigator.userAgent,
    granted: await Promise.all(['geolocation', 'notifications', 'clipboard-read'].map(stateOf)),
    other: await stateOf('camera'),
  };
})()`;
const SEEN = {
  place: ZURICH,
  agent: AGENT,
  granted: ['granted', 'granted', 'granted'],
  other: 'prompt',
};

/** A page whose first script notes what it sees; a secure context, since it is of the machine. */
const SITE_PAGE = `<script>seen = ${SEES}</script>`;
const PATHS: Record<string, [type: string, body: string]> = {
  '/': ['text/html', SITE_PAGE],
  '/frames': [
    'text/html',
    `<iframe src="/"></iframe>
    <iframe id="other" allow="geolocation; clipboard-read"></iframe>
    <script>other.src = 'http://127.0.0.1:' + location.port</script>`,
  ],
  '/worker.js': ['text/javascript', 'postMessage(navigator.userAgent)'],
};

/** A site on this machine that notes who asked it. */
async function openSite(): Promise<{ server: Server; origin: string; agents: Set<string> }> {
  const agents = new Set<string>();
  const server = createServer((request, response) => {
    agents.add(request.headers['user-agent'] ?? '');
    const [type, body] = PATHS[request.url ?? ''] ?? ['text/plain', ''];
    response.setHeader('content-type', type).end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { server, origin: `http://localhost:${port}`, agents };
}

describe('a session of a process browser with a place, a user agent and permissions', () => {
  let service: RunningService;
  let site: Awaited<ReturnType<typeof openSite>>;
  let session: CreatedSession;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    site = await openSite();
    service = await startRealService({ POOL_MIN_IDLE: '1', POOL_MAX: '4' });
    const { status, body } = await service.request('POST', '/api/sessions', ASKED);
    expect([status, body.status]).toEqual([201, 'active']);
    session = body as CreatedSession;
    browser = await connect({ browserWSEndpoint: session.cdp_url, defaultViewport: null });
    const [first] = await browser.pages();
    if (first === undefined) throw new Error('the browser has no page');
    page = first;
  });
  afterAll(async () => {
    await browser?.disconnect();
    await service?.[Symbol.asyncDispose]();
    site?.server.closeAllConnections();
    site?.server.close();
  });

  test('says so in its own words', async () => {
    const { body } = await service.request('GET', `/api/sessions/${session.id}`);
    expect(body).toMatchObject({ ...ASKED, permissions: ASKED.permissions.toSorted() });
    const plain = await service.request('POST', '/api/sessions', {});
    const nothing = { geolocation: null, user_agent: null, permissions: [] };
    expect(plain.body).toMatchObject(nothing);
    await service.request('DELETE', `/api/sessions/${String(plain.body.id)}`);
  });

  test('shows them to its first page from its first script on', async () => {
    await page.goto(site.origin);
    expect(await page.evaluate('seen')).toEqual(SEEN);
  });

  test('shows them to a new tab and to a window that a page opens', async () => {
    const tab = await browser.newPage();
    await tab.goto(site.origin);
    expect(await tab.evaluate('seen')).toEqual(SEEN);
    const opened = new Promise<Page | null>((give) => void tab.once('popup', give));
    await tab.evaluate(`void open('/')`);
    const popup = await opened;
    await popup?.waitForFunction('globalThis.seen !== undefined');
    expect(await popup?.evaluate('seen')).toEqual(SEEN);
    await popup?.close();
    await tab.close();
  });

  test('shows them to iframes, and its user agent to a worker', async () => {
    await page.goto(`${site.origin}/frames`);
    const [, own, foreign] = page.frames();
    expect(await own?.evaluate('seen')).toEqual(SEEN);
    // The frame of another site, which has a process of its own; cameras are not its business.
    const { place, agent, granted } = SEEN;
    expect(await foreign?.evaluate('location.hostname')).toBe('127.0.0.1');
    expect(await foreign?.evaluate('seen')).toMatchObject({ place, agent, granted });
    const worker = await page.evaluate(
      `new Promise((give) => (new Worker('/worker.js').onmessage = ({ data }) => give(data)))`,
    );
    expect(worker).toBe(AGENT);
  });

  test('shows them in a context that a client makes', async () => {
    const context = await browser.createBrowserContext();
    const tab = await context.newPage();
    await tab.goto(site.origin);
    expect(await tab.evaluate('seen')).toEqual(SEEN);
    await context.close();
  });

  test('sends its user agent alone to the sites it visits', () => {
    expect([...site.agents]).toEqual([AGENT]);
  });

  test('is followed by one that is granted each permission there is', async () => {
    const permissions = [...permissionNames];
    const { body } = await service.request('POST', '/api/sessions', { permissions });
    const all = await connect({ browserWSEndpoint: body.cdp_url as string });
    const [first] = await all.pages();
    await first?.goto(site.origin);
    const states = await first?.evaluate(
      `Promise.all(${JSON.stringify(permissions)}.map(async (name) => {
        const asked = name === 'midi-sysex' ? { name: 'midi', sysex: true } : { name };
        return (await navigator.permissions.query(asked)).state;
      }))`,
    );
    expect(states).toEqual(permissions.map(() => 'granted'));
    await all.disconnect();
  });
});

describe.runIf(hasDocker())('a session of a Docker browser', () => {
  test('has them too', async () => {
    const dataDir = { DOCKER_NETWORK: testNetwork(), POOL_MIN_IDLE: '0', POOL_MAX: '2' };
    await using service = await startService({ BROWSERS: 'docker', ...dataDir });
    const { body } = await service.request('POST', '/api/sessions', ASKED);
    const browserWSEndpoint = body.cdp_url as string;
    const browser = await connect({ browserWSEndpoint, defaultViewport: null });
    const tab = await browser.newPage();
    // Only a secure page has a place; this one has no network.
    await tab.setRequestInterception(true);
    tab.on('request', (request) => {
      void request.respond({ contentType: 'text/html', body: SITE_PAGE });
    });
    await tab.goto('https://site.test/');
    expect(await tab.evaluate('seen')).toEqual(SEEN);
    await browser.disconnect();
  });
});
