import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { openSocket, until } from '#test/support/gateway.fixture.ts';
import { DRIVER_SESSION, startDriven } from '#test/support/gateway/driven-session.ts';

const NOW = Date.parse('2026-03-01T12:00:12.000Z');

describe('a command of WebDriver', () => {
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

  test('is taken with the API’s own tickets alone', async () => {
    const site = await startDriven();
    const path = new URL(site.cdpUrl('s1')).pathname.replace('/devtools/browser', '/webdriver');
    const refused = await fetch(`${site.http}${path}/session/${DRIVER_SESSION}/url`);
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
