import { request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createTickets } from '#src/roles/gateway/access/ticket.ts';
import {
  handshake,
  openRaw,
  openSocket,
  refusal,
  startScreen,
  startSession,
  startTestGateway,
  until,
} from '#test/support/gateway.fixture.ts';

describe('refusals', () => {
  test.each([
    ['forged', (ticket: string) => `${ticket.slice(0, -1)}${ticket.endsWith('A') ? 'B' : 'A'}`],
    ['cut', (ticket: string) => ticket.slice(0, -4)],
    ['of another key', () => createTickets(Buffer.alloc(32, 8)).issue('cdp', 'org', 's1')],
    ['for the screen', () => createTickets(Buffer.alloc(32, 7)).issue('vnc', 'org', 's1')],
    ['of an unknown session', () => createTickets(Buffer.alloc(32, 7)).issue('cdp', 'org', 's9')],
  ])('a ticket that is %s opens nothing', async (_name, change) => {
    await using site = await startSession();
    const ticket = site.tickets.issue('cdp', 'org', 's1');
    const answer = await refusal(site.cdpUrl('s1').replace(ticket, change(ticket)));
    expect(answer).toMatchObject({ status: 404, body: { error: 'NOT_FOUND', code: 404 } });
    expect(Object.keys(answer.body)).toEqual(['error', 'message', 'code', 'context']);
    expect(site.browser.handshakes).toEqual([]);
  });

  test('a ticket for the browser does not open the screen', async () => {
    await using site = await startSession();
    const [cdp, vnc] = (['cdp', 'vnc'] as const).map((kind) =>
      site.tickets.issue(kind, 'org', 's1'),
    );
    const url = site.vncUrl('s1').replace(String(vnc), String(cdp));
    expect((await refusal(url)).status).toBe(404);
  });

  test('a session without a browser is refused until it has one', async () => {
    await using site = await startTestGateway();
    site.directory.set('s1', { status: 'queued' });
    for (const url of [site.cdpUrl('s1'), site.vncUrl('s1')]) {
      expect(await refusal(url)).toMatchObject({
        status: 409,
        retryAfter: '1',
        body: { error: 'SESSION_NOT_READY', context: { session_id: 's1', status: 'queued' } },
      });
    }
    const plain = await fetch(site.cdpUrl('s1').replace('ws:', 'http:'));
    expect(plain.status).toBe(409);
  });

  test('an ended session is refused; others stay open', async () => {
    await using site = await startSession();
    site.directory.set('s2', { status: 'ended', reason: 'expired' });
    expect(await refusal(site.cdpUrl('s2'))).toMatchObject({
      status: 410,
      body: { error: 'SESSION_ENDED', context: { session_id: 's2', ended_reason: 'expired' } },
    });
    expect((await fetch(site.cdpUrl('s2').replace('ws:', 'http:'))).status).toBe(410);
    const client = await openSocket(site.cdpUrl('s1'));
    await client.echoes('still here');
    client.socket.close();
  });

  test('a browser that refuses or does not answer is 502', async () => {
    await using site = await startSession({ limits: { dialTimeoutMs: 100 } });
    const unreachable = { host: '127.0.0.1', port: 1, path: '/devtools/browser/x' };
    const silent = { ...site.screen.endpoint, path: '/devtools/browser/x' };
    for (const cdp of [unreachable, silent]) {
      site.directory.set('s2', { status: 'active', cdp, vnc: unreachable });
      expect(await refusal(site.cdpUrl('s2'))).toMatchObject({
        status: 502,
        body: { error: 'BROWSER_UNREACHABLE', code: 502 },
      });
      const json = site.cdpUrl('s2').replace('ws:', 'http:');
      expect((await fetch(`${json}/json/version`)).status).toBe(502);
    }
    expect((await refusal(site.vncUrl('s2'))).status).toBe(502);
    await site.isClean();
  });

  test('a browser that is gone because its session has ended is 410 with the reason', async () => {
    const gone = { host: '127.0.0.1', port: 1, path: '/devtools/browser/x' };
    await using site = await startTestGateway({
      sessions: {
        // What is remembered is older than what the event store's leader has.
        find: async (_organization, _id, { fromLeader = false } = {}) =>
          fromLeader
            ? { status: 'ended', reason: 'browser_crashed' }
            : { status: 'active', cdp: gone, vnc: gone },
      },
    });
    const ended = { error: 'SESSION_ENDED', context: { ended_reason: 'browser_crashed' } };
    for (const url of [site.cdpUrl('s1'), site.vncUrl('s1')])
      expect(await refusal(url)).toMatchObject({ status: 410, body: ended });
    const json = await fetch(`${site.cdpUrl('s1').replace('ws:', 'http:')}/json/list`);
    expect([json.status, await json.json()]).toMatchObject([410, ended]);
  });

  test('the screen of a headless session is 404', async () => {
    await using site = await startSession();
    site.directory.set('s2', { status: 'active', cdp: site.browser.endpoint, vnc: null });
    expect((await refusal(site.vncUrl('s2'))).status).toBe(404);
    const state = site.vncUrl('s2').replace('ws:', 'http:').replace('websockify', 'state');
    expect((await fetch(state)).status).toBe(404);
    const driver = await openSocket(site.cdpUrl('s2'));
    await driver.echoes('it has a browser');
  });

  test.each([
    ['no length', '\r\n{}'],
    ['a length beyond the bound', 'Content-Length: 99999999\r\n\r\n'],
    ['less than its length', 'Content-Length: 10\r\n\r\n{}'],
    ['more than its length', 'Content-Length: 2\r\n\r\n{}{}'],
    ['no JSON', 'Content-Length: 2\r\n\r\n{{'],
    ['no address', 'Content-Length: 2\r\n\r\n{}'],
  ])('a browser that says who it is with %s is 502', async (_name, rest) => {
    await using site = await startSession({ limits: { dialTimeoutMs: 1_000 } });
    await using impostor = await startScreen();
    const said = impostor.socket().then((socket) => socket.write(`HTTP/1.1 200 OK\r\n${rest}`));
    const cdp = { ...impostor.endpoint, path: '/devtools/browser/x' };
    site.directory.set('s2', { status: 'active', cdp, vnc: site.screen.endpoint });
    const url = site.vncUrl('s2');
    expect(await refusal(url)).toMatchObject({ status: 502 });
    await said;
    await site.isClean();
    expect(site.screen.received).toEqual([]);
  });

  test('a directory that does not answer is 503', async () => {
    await using site = await startTestGateway({
      sessions: { find: () => new Promise(() => {}) },
      limits: { lookupTimeoutMs: 50 },
    });
    expect(await refusal(site.cdpUrl('s1'))).toMatchObject({
      status: 503,
      body: { error: 'UNAVAILABLE' },
    });
    await using broken = await startTestGateway({
      sessions: { find: () => Promise.reject(new Error('no log')) },
    });
    expect((await refusal(broken.cdpUrl('s1'))).status).toBe(503);
  });

  test('connections are limited per session and per gateway', async () => {
    await using site = await startSession({ limits: { connections: 3, connectionsPerSession: 2 } });
    const s1 = site.directory.get('s1');
    if (s1 !== undefined) for (const id of ['s2', 's3']) site.directory.set(id, s1);
    const first = await openSocket(site.cdpUrl('s1'));
    await openSocket(site.vncUrl('s1'));
    expect(await refusal(site.cdpUrl('s1'))).toMatchObject({
      status: 429,
      body: { error: 'RATE_LIMIT_EXCEEDED', context: { of: 'session', limit: 2 } },
    });
    await openSocket(site.cdpUrl('s2'));
    expect((await refusal(site.cdpUrl('s3'))).body.context).toEqual({ of: 'gateway', limit: 3 });
    first.socket.close();
    await until(() => site.gateway.counters().open.cdp === 1, 'a free place');
    const next = await openSocket(site.cdpUrl('s3'));
    await next.echoes('in again');
  });

  test('an upgrade that is no WebSocket handshake reaches no browser', async () => {
    await using site = await startSession();
    const path = new URL(site.cdpUrl('s1')).pathname;
    const status = await new Promise((resolve) => {
      const headers = { connection: 'Upgrade', upgrade: 'h2c' };
      request({ host: '127.0.0.1', port: site.port, path, headers }, (response) =>
        resolve(response.statusCode),
      ).end();
    });
    expect(status).toBe(400);
    expect((await fetch(`${site.http}${path}`)).status).toBe(400);
    expect((await fetch(`${site.http}${path}`, { method: 'POST' })).status).toBe(405);
    expect(site.browser.handshakes).toEqual([]);
  });

  test('a handshake with a key of another form is left to the browser to refuse', async () => {
    await using site = await startSession();
    const begin = handshake(site.cdpUrl('s1')).replace(/Key: \S+/, 'Key: nil');
    // This browser refuses it; Chromium takes it.
    await expect(openRaw(site.cdpUrl('s1'), begin)).rejects.toThrow();
    expect(site.browser.handshakes).toMatchObject([{ 'sec-websocket-key': 'nil' }]);
  });

  test('two hundred random paths are refused', async () => {
    await using site = await startSession();
    const statuses = new Set<number>();
    for (let n = 0; n < 200; n += 1)
      statuses.add(await statusOf(site.port, rubbish(n), n % 2 === 0));
    expect([...statuses].filter((status) => status !== 404 && status !== 400)).toEqual([]);
    const client = await openSocket(site.cdpUrl('s1'));
    await client.echoes('unharmed');
    client.socket.close();
    await site.isClean();
    expect(site.logged.filter((line) => line.includes('failed'))).toEqual([]);
  });
});

/** Pseudo-random paths, some of them nearly right. */
function rubbish(n: number): string {
  const parts = ['devtools', 'browser', 'page', 'vnc', 'viewer', 'novnc', 'json', 'version', '..'];
  parts.push(
    'websockify',
    '%2e%2e',
    '%00',
    '',
    '?',
    '#',
    '\\',
    'A'.repeat(40),
    'é',
    'state',
    '~',
    ' ',
  );
  let seed = n * 2_654_435_761 + 1;
  const pick = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648);
  const length = 1 + (pick() % 7);
  return `/${Array.from({ length }, () => parts[pick() % parts.length]).join('/')}`;
}

async function statusOf(port: number, path: string, isUpgrade: boolean): Promise<number> {
  const socket = connect({ host: '127.0.0.1', port });
  const plain = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  socket.write(isUpgrade ? handshake('ws://x/').replace('GET / ', `GET ${path} `) : plain);
  const answer = await new Promise<Buffer>((resolve, reject) => {
    socket.once('data', resolve);
    socket.once('error', reject);
    socket.once('close', () => reject(new Error(`no answer to ${path}`)));
  });
  socket.destroy();
  return Number(answer.toString('latin1', 9, 12));
}
