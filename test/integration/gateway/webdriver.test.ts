import { once } from 'node:events';
import { Agent, createServer, request as send, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { GatewayOptions } from '#src/gateway/gateway.ts';
import { createDriverUrl } from '#src/gateway/access/urls.ts';
import { openSocket, startSession, until } from '#test/support/gateway.fixture.ts';

/** Commands as the API sends them, to a driver that answers with the length of each body. */
const ID = 'a'.repeat(32);
const NOW = Date.parse('2026-03-01T12:00:12.000Z');

/** Longer than the gateway keeps a connection of other requests: 5 s, and Node's 1 s. */
const STANDS_STILL_MS = 6_500;

/** Stops this process, without work for the processor. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function startDriver() {
  const commands: string[] = [];
  const driver = createServer((request, response) => {
    commands.push(`${request.method} ${request.url}`);
    const answer = (body: string) => response.end(JSON.stringify({ value: body.length }));
    if (request.url?.endsWith('/slow') !== true) text(request).then(answer, () => undefined);
  });
  driver.listen(0, '127.0.0.1');
  await once(driver, 'listening');
  onTestFinished(() => {
    driver.closeAllConnections();
    driver.close();
  });
  return { port: (driver.address() as AddressInfo).port, commands };
}

/** A gateway with the session `s1` and its driver. */
async function startDriven(options: Partial<GatewayOptions> = {}) {
  const driver = await startDriver();
  const site = await startSession(options);
  onTestFinished(() => site[Symbol.asyncDispose]());
  const { endpoint: cdp } = site.browser;
  const webdriver = { host: '127.0.0.1', port: driver.port, path: '', cdpPort: cdp.port };
  const s1 = { status: 'active', cdp, vnc: null, webdriver } as const;
  site.directory.set('s1', s1);
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const driverUrl = createDriverUrl(site.http, site.tickets);

  function begin(method: string, path: string, { session = 's1', bytes = 0 } = {}) {
    const headers = bytes === 0 ? {} : { 'content-length': bytes };
    const url = `${driverUrl('org', session, null)}/session/${ID}${path}`;
    const sent = send(url, { agent, method, headers });
    sent.on('error', () => undefined);
    return sent;
  }
  async function answerTo(sent: ReturnType<typeof begin>) {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const body = JSON.parse(await text(response)) as Record<string, unknown>;
    return { status: response.statusCode, headers: response.headers, body };
  }
  const command = (...asked: Parameters<typeof begin>) => answerTo(begin(...asked).end());
  return { ...site, s1, driver, begin, answerTo, command };
}

describe('a command of WebDriver', () => {
  test.each([0, 4])(
    'with a body of %i bytes waits while a person holds the session, beyond the time of silence',
    async (bytes) => {
      const bodySilentMs = 50;
      const site = await startDriven({ limits: { bodySilentMs } });
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
      const taken = { id: 'h1', status: 'taken', expiresAt } as const;
      site.directory.set('s1', { ...site.s1, handoff: taken, sequence: 5 });
      const held = { handoffId: 'h1', untilMs: Date.parse(expiresAt) };
      site.gateway.hold('org', 's1', held, 5);
      const sent = site.begin(bytes === 0 ? 'GET' : 'POST', '/url', { bytes });
      const answered = site.answerTo(sent);
      sent.end('x'.repeat(bytes));
      await until(() => site.lookups.length > 0, 'the command');
      await sleep(10 * bodySilentMs);
      expect(site.driver.commands).toEqual([]);
      site.gateway.hold('org', 's1', null, 6);
      expect(await answered).toMatchObject({ status: 200, body: { value: bytes } });
    },
  );

  test('loses its connection where its body stops coming', async () => {
    const site = await startDriven({ limits: { bodySilentMs: 50 } });
    const sent = site.begin('POST', '/url', { bytes: 4 });
    sent.write('x');
    const [error] = (await once(sent, 'error')) as [Error & { code: string }];
    expect(error.code).toBe('ECONNRESET');
  });

  test('that is refused closes its connection, read or not', async () => {
    const site = await startDriven();
    const refused = await site.command('GET', '/url', { session: 'none' });
    expect(refused).toMatchObject({ status: 404, headers: { connection: 'close' } });
    const sent = site.begin('POST', '/url', { session: 'none', bytes: 4 });
    sent.write('x');
    const unread = await site.answerTo(sent);
    expect(unread).toMatchObject({ status: 404, headers: { connection: 'close' } });
  });

  test('comes on a kept connection though the gateway stands still meanwhile', async () => {
    const site = await startDriven();
    expect((await site.command('GET', '/url')).status).toBe(200);
    const sent = site.begin('GET', '/url');
    // By then its bytes have left, and the gateway, which is in this process, has read none.
    sent.once('socket', () => process.nextTick(standStill, STANDS_STILL_MS));
    expect((await site.answerTo(sent.end())).status).toBe(200);
    expect(sent.reusedSocket).toBe(true);
  });

  test('is taken with the API’s own tickets alone', async () => {
    const site = await startDriven();
    const path = new URL(site.cdpUrl('s1')).pathname.replace('/devtools/browser', '/webdriver');
    const refused = await fetch(`${site.http}${path}/session/${ID}/url`);
    expect([refused.status, site.driver.commands, site.lookups]).toEqual([404, [], []]);
    expect((await site.command('GET', '/url')).status).toBe(200);
    await (await openSocket(site.cdpUrl('s1'))).echoes('its own way');
  });
});

describe('commands of all sessions come from one address, and', () => {
  test('those that run leave its sockets to others', async () => {
    const site = await startDriven({ limits: { socketsPerAddress: 2 } });
    for (let n = 0; n < 4; n += 1) {
      site.begin('GET', '/slow').end();
      await until(() => site.driver.commands.length === n + 1, `command ${n}`);
    }
    expect((await fetch(`${site.http}/viewer/viewer.js`)).status).toBe(200);
  });

  test('those that run leave a proxy’s requests to others', async () => {
    const limits = { socketsPerAddress: 2 };
    const site = await startDriven({ limits, trustedProxies: ['127.0.0.1'] });
    for (let n = 0; n < 4; n += 1) {
      site.begin('GET', '/slow').end();
      await until(() => site.driver.commands.length === n + 1, `command ${n}`);
    }
    expect((await fetch(`${site.http}/viewer/viewer.js`)).status).toBe(200);
  });

  test('those for no session or an ended one count for their organization', async () => {
    const limits = { requestsPerAddress: 3, commandsPerOrganization: 10 };
    const site = await startDriven({ now: () => NOW, limits });
    site.directory.set('over', { status: 'ended', reason: 'user' });
    const statuses: unknown[] = [];
    for (let n = 0; n < 5; n += 1) {
      statuses.push((await site.command('GET', '/url', { session: 'over' })).status);
      // The second one is known to be worthless.
      statuses.push((await site.command('GET', '/url', { session: 'none' })).status);
    }
    expect(statuses).toEqual(Array.from({ length: 5 }, () => [410, 404]).flat());
    expect((await fetch(`${site.http}/viewer/viewer.js`)).status).toBe(200);
    const refused = await site.command('GET', '/url', { session: 'other' });
    expect(refused).toMatchObject({ status: 429, body: { context: { of: 'organization' } } });
  });
});

test('a refused command whose body never comes leaves no connection open', async () => {
  const site = await startDriven({ limits: { commandsPerTicket: 0 } });
  const { path } = site.begin('POST', '/url');
  const socket = connect(site.port, '127.0.0.1');
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 429 [^]*connection: close/i);
  await once(socket, 'close');
});
