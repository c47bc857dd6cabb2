import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect as connectPuppeteer } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { decodeScript, isNear, type Decoded } from '#test/support/clients/jpeg.ts';
import { visit } from '#test/support/clients/visit.ts';
import { bss } from '#test/support/clients/command-line.ts';
import { auditLog, movesOf, nameOf } from '#test/support/service/audit-event-store.ts';
import { stillRunning } from '#test/support/service/processes.ts';
import {
  colourOf,
  createWarm,
  onPage,
  openCdp,
  openScreen,
  pageOf,
  poolOf,
  reaches,
  readSession,
  startRealService,
  tracesOf,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';

const RED = '#c81e28';
const GREEN = '#1ec828';

/**
 * What sessions with real browsers keep apart, show and end by, over the whole service; one whole
 * life is in `session.test.ts`.
 */
let service: RealService;

beforeAll(async () => {
  service = await startRealService({ POOL_MIN_IDLE: '2', POOL_MAX_IDLE: '2', POOL_MAX: '6' });
});

afterAll(() => service[Symbol.asyncDispose]());

test('a screenshot shows what the driver shows, also to who only looks', async () => {
  const session = await createWarm(service);
  const url = `${service.apiUrl}/api/sessions/${session.id}/screenshot?max_width=320`;
  const ask = (headers: Record<string, string> = {}) =>
    fetch(url, { headers: { authorization: `Bearer ${DEV_KEY}`, ...headers } });
  const middleOf = (bytes: ArrayBuffer) =>
    onPage(session, (page) => page.evaluate(decodeScript(new Uint8Array(bytes))));
  for (const colour of [RED, GREEN]) {
    await onPage(session, (page) => page.goto(pageOf(colour)));
    const isShown = async () => {
      const picture = await ask();
      // A browser that makes none for some seconds is left alone for a while.
      if (picture.status !== 200) return false;
      const { middle, width } = (await middleOf(await picture.arrayBuffer())) as Decoded;
      return width === 320 && isNear(middle, colour);
    };
    await eventually(isShown, `the screenshot shows ${colour}`);
  }
  const etag = (await ask()).headers.get('etag') ?? '';
  const isSame = async () => (await ask({ 'if-none-match': etag })).status === 304;
  // Beyond the second in which it is kept.
  const later = performance.now() + 1_500;
  await eventually(async () => performance.now() > later && isSame(), 'the same page is 304');
  await service.request('DELETE', `/api/sessions/${session.id}`);
  expect((await ask()).status).toBe(410);
});

describe('data that a session stored', () => {
  test('is not in the next session', async () => {
    await using site = await startSite();
    const first = await createWarm(service);
    expect(await onPage(first, (page) => storeAt(page, site.url, 'first'))).toBe('first first');
    await stop(first);
    const next = await createWarm(service);
    expect(next.autoscaler_workload_id).not.toBe(first.autoscaler_workload_id);
    expect(await onPage(next, (page) => storedAt(page, site.url))).toBe(' ');
    await stop(next);
  });

  test('is not in a concurrent session', async () => {
    await using site = await startSite();
    const [one, other] = [await createWarm(service), await createWarm(service)];
    expect(await onPage(one, (page) => storeAt(page, site.url, 'one'))).toBe('one one');
    expect(await onPage(other, (page) => storedAt(page, site.url))).toBe(' ');
    expect(await onPage(other, (page) => storeAt(page, site.url, 'other'))).toBe('other other');
    expect(await onPage(one, (page) => storedAt(page, site.url))).toBe('one one');
    expect(await onPage(one, async (page) => (await page.browser().pages()).length)).toBe(1);
    await Promise.all([stop(one), stop(other)]);
  });
});

test('a session whose browser is killed releases slot and unused credits, and others go on', async () => {
  const unharmed = await createWarm(service);
  const session = await createWarm(service, { duration: '1h' });
  const driver = await openCdp(session.cdp_url);
  const viewer = await openScreen(session, session.vnc_password);
  const { chromium, processes, files } = tracesOf(service, session.autoscaler_workload_id);

  process.kill(chromium, 'SIGKILL');
  const failed = await reaches(service, session.id, 'failed');
  expect(failed).toMatchObject({ ended_reason: 'browser_crashed', credits_used: 1 });
  // The screen goes with the browser, sometimes before the log has the reason.
  expect([4005, 4009]).toContain(await viewer.closed);
  expect(await driver.closed).toBe(1006);
  expect(stillRunning(processes)).toEqual([]);
  expect(files()).toEqual([]);
  await eventually(async () => (await poolOf(service))['idle'] === 2, 'the pool is filled again');
  expect(await onPage(unharmed, (page) => page.evaluate('6 * 7'))).toBe(42);

  const { sessions } = await auditLog(service);
  const life = sessions.get(session.id);
  expect(life?.state).toMatchObject({ status: 'failed', creditsReserved: 60, creditsUsed: 1 });
  expect(sessions.get(unharmed.id)?.state.status).toBe('active');
  await stop(unharmed);
});

test('a session goes on without a page, and stops when its driver closes the browser', async () => {
  const session = await createWarm(service, { duration: '1h' });
  const viewer = await openScreen(session, session.vnc_password);
  const { processes, files } = tracesOf(service, session.autoscaler_workload_id);
  const { cdp_url: browserWSEndpoint } = session;
  const browser = await connectPuppeteer({ browserWSEndpoint, defaultViewport: null });
  for (const page of await browser.pages()) await page.close();
  const page = await browser.newPage();
  await page.goto(pageOf(RED));
  await eventually(async () => (await colourOf(viewer.rfb)) === RED, 'the screen shows the page');
  expect((await readSession(service, session.id)).status).toBe('active');

  await browser.close();
  const stopped = await reaches(service, session.id, 'stopped');
  expect(stopped).toMatchObject({ ended_reason: 'browser_closed', credits_used: 1, cdp_url: null });
  // The screen goes with the browser, as a rule before the log has the reason.
  expect([4005, 4017]).toContain(await viewer.closed);
  expect(stillRunning(processes)).toEqual([]);
  expect(files()).toEqual([]);
  const again = await service.request('DELETE', `/api/sessions/${session.id}`);
  expect([again.status, again.body.message]).toEqual([200, expect.stringContaining('stopped')]);

  const { sessions, ledgerEvents } = await auditLog(service);
  const names = sessions.get(session.id)?.events.map(nameOf) ?? [];
  expect(names.filter((name) => name !== 'accessed')).toEqual([
    ...['requested', 'activated', 'stop-requested', 'stopped'],
  ]);
  expect(movesOf(ledgerEvents, session.id)).toEqual(['slot-reserved', 'slot-released']);
  const why = await bss(service, 'why', session.id);
  expect([why.code, why.stderr]).toEqual([0, '']);
  expect(why.stdout).toMatch(/ stopped \(browser_closed\) at /);
  expect(why.stdout).toContain('because its user closed the browser');
});

async function stop({ id }: CreatedSession): Promise<void> {
  expect((await service.request('DELETE', `/api/sessions/${id}`)).status).toBe(200);
  await reaches(service, id, 'stopped');
}

type Page = Parameters<Parameters<typeof onPage>[1]>[0];

async function storeAt(page: Page, url: string, value: string): Promise<string> {
  await visit(page, url);
  await page.evaluate(`document.cookie = 'kept=${value}; max-age=3600'`);
  await page.evaluate(`localStorage.setItem('kept', '${value}')`);
  return storedAt(page, url);
}

/** What the site has of cookie and of local storage, with a space between. */
async function storedAt(page: Page, url: string): Promise<string> {
  await visit(page, url);
  return String(
    await page.evaluate(
      `document.cookie.replace('kept=', '') + ' ' + (localStorage.getItem('kept') ?? '')`,
    ),
  );
}

/** A web site of its own origin. */
async function startSite() {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html').end('<title>site</title>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
