import { connect, type Browser } from 'puppeteer-core';
import { describe, expect, test } from 'vitest';
import { createClient } from '#src/apps/client/client.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { createWarm, openScreen, startRealService } from '#test/support/service/real-session.ts';
import { note, notesOf, record } from '#test/support/clients/recording-page.ts';
import { DEV_KEY, eventually, startService } from '#test/support/service/service.ts';

/**
 * The gateway and the timekeeper are killed while a person holds a session: the hand-off is state,
 * so what comes back keeps to it. One of the tests lets a minute pass, so they run at once.
 */

/** A service in three processes: gateway and timekeeper each in one of its own. */
async function startApart() {
  await using stack = new AsyncDisposableStack();
  const [port = 0, tlsPort = 0] = await freePorts(2);
  const common = {
    MASTER_KEY: 'master-key-of-three-processes-0123456789',
    PUBLIC_GATEWAY_WS_URL: `ws://127.0.0.1:${port}`,
    PUBLIC_GATEWAY_WSS_URL: `wss://127.0.0.1:${tlsPort}`,
    POOL_MIN_IDLE: '1',
    POOL_MAX: '1',
  };
  const roles = { ROLES: 'api,projector,provisioner' };
  const main = stack.use(await startRealService({ ...common, ...roles }));
  const { nats_url: NATS_URL, redis_url: REDIS_URL } = main.runtime;
  const stores = { ...common, NATS_URL, REDIS_URL };
  const ports = { GATEWAY_PORT: `${port}`, GATEWAY_TLS_PORT: `${tlsPort}` };
  const gateway = stack.use(await startService({ ...stores, ...ports, ROLES: 'gateway' }));
  const timekeeper = stack.use(await startService({ ...stores, ROLES: 'timekeeper' }));
  const all = stack.move();
  return { main, gateway, timekeeper, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

const driver = (browserWSEndpoint: string): Promise<Browser> =>
  connect({ browserWSEndpoint, defaultViewport: null });

async function pageOf(browser: Browser) {
  const [page] = await browser.pages();
  if (page === undefined) throw new Error('the browser has no page');
  return page;
}

async function press(taken: { vnc_url: string; vnc_password: string }, text: string) {
  const screen = await openScreen(taken, taken.vnc_password);
  for (const isDown of [true, false]) screen.rfb.key(text.charCodeAt(0), isDown);
  await screen.rfb.framebuffer();
  screen.socket.close();
  await screen.closed;
}

describe.concurrent('a hand-off', () => {
  test('a person keeps a session although gateway and timekeeper are killed, and automation waits', async () => {
    await using service = await startApart();
    const { main, gateway, timekeeper } = service;
    const client = createClient({ url: main.apiUrl, apiKey: DEV_KEY });
    const created = await createWarm(main, { duration: '30m' });
    const session = await client.sessions.get(created.id);
    const before = await driver(created.cdp_url);
    await record(await pageOf(before));

    const asked = Promise.withResolvers<string>();
    const waiting = session.handoff(
      { instructions: 'Press b.', timeout: '10m' },
      { onRequested: ({ id }) => asked.resolve(id) },
    );
    const path = `/api/sessions/${session.id}/handoffs/${await asked.promise}`;
    const taken = (await main.request('POST', `${path}/take`)).body;
    await press(taken, 'a');
    await gateway.end('SIGKILL');
    await timekeeper.end('SIGKILL');
    await eventually(() => !before.connected, 'the driver’s connection is lost');
    await gateway.startAgain();

    // The driver comes back, and waits before its first answer.
    const back = driver(created.cdp_url);
    const noted = back.then(async (browser) => {
      const page = await pageOf(browser);
      await Promise.all(['one', 'two', 'three'].map((text) => note(page, text)));
      return page;
    });
    await press(taken, 'b');
    await timekeeper.startAgain();
    await main.request('POST', `${path}/complete`, { success: true, note: 'Pressed.' });
    expect(await waiting).toMatchObject({ status: 'completed', success: true, note: 'Pressed.' });
    expect(await notesOf(await noted)).toEqual(['begin', 'a', 'b', 'one', 'two', 'three']);
    await (await back).disconnect();
  });

  test('automation goes on at the end of a hand-off although no timekeeper runs then', async () => {
    await using service = await startApart();
    const { main, timekeeper } = service;
    const client = createClient({ url: main.apiUrl, apiKey: DEV_KEY });
    const created = await createWarm(main, { duration: '30m' });
    const session = await client.sessions.get(created.id);
    const browser = await driver(created.cdp_url);
    const page = await pageOf(browser);
    await record(page);

    const asked = Promise.withResolvers<string>();
    const waiting = session.handoff(
      { instructions: 'Press b.', timeout: '1m' },
      { onRequested: ({ id }) => asked.resolve(id) },
    );
    const path = `/api/sessions/${session.id}/handoffs/${await asked.promise}`;
    const taken = (await main.request('POST', `${path}/take`)).body;
    await timekeeper.end('SIGKILL');
    const noted = note(page, 'after');
    await press(taken, 'b');
    await noted;
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(taken.expires_at));
    expect(await notesOf(page)).toEqual(['begin', 'b', 'after']);
    expect((await main.request('GET', path)).body.status).toBe('taken');

    await timekeeper.startAgain();
    await eventually(
      async () => (await main.request('GET', path)).body.status === 'expired',
      'the timekeeper expires it',
    );
    expect(await waiting).toMatchObject({ status: 'expired', success: null });
    await browser.disconnect();
  });
});
