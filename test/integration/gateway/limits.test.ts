import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { holderOf } from '#src/roles/gateway/access/ticket.ts';
import { ensureCertificate } from '#src/roles/gateway/certificate.ts';
import {
  handshake,
  openSocket,
  refusal,
  startSession,
  until,
} from '#test/support/gateway.fixture.ts';

/** Inside a window of the rate limit, 12 s after its begin. */
const NOW = Date.parse('2026-03-01T12:00:12.000Z');
const RESET = String(NOW / 1000 + 48);
const now = () => NOW;

/** The status of an answer and its rate-limit headers. */
type Told = { status: number; limit: string; remaining: string; reset: string };

const limits = { requestsPerTicket: 8, requestsPerOrganization: 12, requestsPerAddress: 5 };

describe('every answer tells what is left of the limit', () => {
  test('documents, the viewer and its files, errors, handshakes and what is no request', async () => {
    await using site = await startSession({ now });
    const cdp = new URL(site.cdpUrl('s1')).pathname;
    const vnc = new URL(site.vncUrl('s1')).pathname.replace('/websockify', '');
    const get = (path: string, method = 'GET') =>
      `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
    const asked: [string, string, number][] = [
      ['a document', get(`${cdp}/json/version`), 200],
      ['the viewer', get(`${vnc}/`), 200],
      ['its state', get(`${vnc}/state`), 200],
      ['its address without a slash', get(vnc), 308],
      ['a file', get('/viewer/viewer.js'), 200],
      ['no file', get('/viewer/none.js'), 404],
      ['no path', get('/'), 404],
      ['a plain request to a socket', get(cdp), 400],
      ['another method', get(cdp, 'POST'), 405],
      ['no Host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
      ['an unknown Expect', get('/').replace('Host', 'Expect: more\r\nHost'), 404],
      ['no HTTP', 'rubbish\r\n\r\n', 400],
      ['a handshake of a driver', handshake(site.cdpUrl('s1')), 101],
      ['a handshake of a viewer', handshake(site.vncUrl('s1')), 101],
      ['a handshake at no path', handshake('ws://x/'), 404],
      ['a handshake of another protocol', handshake('ws://x/').replace('websocket', 'h2c'), 404],
      ['a wrong subprotocol', withProtocol(handshake(site.vncUrl('s1')), ',,'), 400],
    ];
    for (const [what, bytes, status] of asked) {
      const told = await ask(site.port, bytes);
      expect(told, what).toMatchObject({ status, reset: RESET });
      expect(Number(told.limit), what).toBeGreaterThan(0);
      expect(Number(told.remaining), what).toBeLessThan(Number(told.limit));
    }
  });
});

describe('requests in a minute', () => {
  test('are limited by ticket, and no other ticket is concerned', async () => {
    let time = NOW;
    await using site = await startSession({ now: () => time, limits });
    const s1 = site.directory.get('s1');
    if (s1 !== undefined) site.directory.set('s2', s1);
    const version = (id: string) => `${site.cdpUrl(id).replace('ws:', 'http:')}/json/version`;
    const remaining = async () => (await fetch(version('s1'))).headers.get('x-ratelimit-remaining');
    expect([await remaining(), await remaining()]).toEqual(['7', '6']);
    await openSocket(site.cdpUrl('s1')); // a handshake counts as well
    expect(await remaining()).toBe('4');
    for (let n = 0; n < 4; n += 1) await remaining();
    const refused = await refusal(site.cdpUrl('s1'));
    expect(refused).toMatchObject({
      status: 429,
      retryAfter: '48',
      body: { error: 'RATE_LIMIT_EXCEEDED', context: { of: 'ticket', limit: 8 } },
    });
    expect((await fetch(version('s1'))).status).toBe(429);
    expect((await fetch(version('s2'))).status).toBe(200);
    time += 48_000;
    expect((await fetch(version('s1'))).status).toBe(200);
  });

  test('are limited by organization, over all of its tickets', async () => {
    await using site = await startSession({ now, limits });
    const s1 = site.directory.get('s1');
    if (s1 !== undefined) site.directory.set('s2', s1);
    const version = (id: string) => `${site.cdpUrl(id).replace('ws:', 'http:')}/json/version`;
    for (let n = 0; n < 6; n += 1)
      for (const id of ['s1', 's2']) expect((await fetch(version(id))).status).toBe(200);
    const refused = await fetch(version('s2'));
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('0');
    expect(await refused.json()).toMatchObject({ context: { of: 'organization', limit: 12 } });
    const other = site.tickets.issue('cdp', 'another', 's1');
    expect((await fetch(`${site.http}/devtools/${other}/json/version`)).status).toBe(200);
  });

  test('of one session cannot use up those of its organization', async () => {
    await using site = await startSession({ now, limits });
    const s1 = site.directory.get('s1');
    if (s1 !== undefined) site.directory.set('s2', s1);
    const version = (id: string) => `${site.cdpUrl(id).replace('ws:', 'http:')}/json/version`;
    for (let n = 0; n < 50; n += 1) await fetch(version('s1'));
    for (let n = 0; n < 4; n += 1) expect((await fetch(version('s2'))).status).toBe(200);
  });

  test('without a valid ticket are limited by the client’s address', async () => {
    await using site = await startSession({ now, limits, trustedProxies: ['127.0.0.1'] });
    const unknown = site.cdpUrl('s1').replace('ws:', 'http:').slice(0, -1);
    const of = (address: string) => ({ headers: { 'x-forwarded-for': address } });
    const statuses: number[] = [];
    for (const path of [unknown, '/viewer/viewer.js', '/', '/x', unknown, unknown])
      statuses.push((await fetch(new URL(path, site.http), of('192.0.2.1'))).status);
    expect(statuses).toEqual([404, 200, 404, 404, 404, 429]);
    expect((await fetch(`${site.http}/viewer/viewer.js`, of('192.0.2.2'))).status).toBe(200);
    // A valid ticket is not concerned.
    const version = `${site.cdpUrl('s1').replace('ws:', 'http:')}/json/version`;
    expect((await fetch(version, of('192.0.2.1'))).status).toBe(200);
  });
});

describe('a request whose ticket is not admitted', () => {
  const of = (address: string) => ({ headers: { 'x-forwarded-for': address } });
  const ADA = 'ad'.repeat(32);
  const versionAt = (cdpUrl: string) => `${cdpUrl.replace('ws:', 'http:')}/json/version`;
  const few = { now, limits, trustedProxies: ['127.0.0.1'] };

  test('takes nothing of its session and of its organization', async () => {
    await using site = await startSession(few);
    site.directory.set('gone', { status: 'ended', reason: 'user' });
    site.revoked.add(holderOf(ADA));
    const viewer = (url: string) => url.replace('ws:', 'http:').replace('websockify', '');
    const post = (url: string, address: string) => fetch(url, { method: 'POST', ...of(address) });
    for (let n = 0; n < 20; n += 1) {
      const from = of(`192.0.2.${n}`);
      const statuses = [
        (await fetch(versionAt(site.cdpUrl('s1', { keyHash: ADA })), from)).status,
        (await fetch(versionAt(site.cdpUrl('never')), from)).status,
        (await fetch(versionAt(site.cdpUrl('gone')), from)).status,
        (await fetch(viewer(site.vncUrl('gone')), from)).status,
        (await post(versionAt(site.cdpUrl('s1', { keyHash: ADA })), `192.0.2.${n}`)).status,
      ];
      expect(statuses).toEqual([404, 404, 410, 200, 405]);
    }
    // Every one of them counted for its client's address.
    expect((await fetch(`${site.http}/`, of('192.0.2.0'))).status).toBe(429);
    expect((await fetch(viewer(site.vncUrl('gone')), of('192.0.2.0'))).status).toBe(429);
    const owner = await fetch(versionAt(site.cdpUrl('s1')), of('192.0.2.0'));
    expect(owner.status).toBe(200);
    expect(owner.headers.get('x-ratelimit-remaining')).toBe('7');
  });

  test('is answered like one with a ticket that never was, however many there are', async () => {
    await using site = await startSession(few);
    site.revoked.add(holderOf(ADA));
    const answers = async (url: string, address: string) => {
      const told: unknown[] = [];
      for (let n = 0; n < 10; n += 1) {
        const { status, headers } = await fetch(url, of(address));
        told.push([status, headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]);
      }
      return told;
    };
    const never = await answers(
      versionAt(site.cdpUrl('s1')).replace('browser/', 'browser/A'),
      '192.0.2.1',
    );
    expect(never).toHaveLength(10);
    expect(never.at(-1)).toEqual([429, '5', '0']);
    const revoked = versionAt(site.cdpUrl('s1', { keyHash: ADA }));
    expect(await answers(revoked, '192.0.2.2')).toEqual(never);
    site.directory.set('s1', { status: 'ended', accessEpoch: 1, reason: 'user' });
    expect(await answers(versionAt(site.cdpUrl('s1')), '192.0.2.3')).toEqual(never);
  });

  test('is looked up once in 5 s if it is worthless', async () => {
    let time = NOW;
    await using site = await startSession({ ...few, now: () => time });
    site.revoked.add(holderOf(ADA));
    const revoked = versionAt(site.cdpUrl('s1', { keyHash: ADA }));
    for (let n = 0; n < 20; n += 1) await fetch(revoked, of(`192.0.2.${n}`));
    expect(site.lookups).toEqual(['s1']);
    time += 5_000;
    await fetch(revoked, of('192.0.2.99'));
    expect(site.lookups).toEqual(['s1', 's1']);
  });

  test('counts for the ticket if it leads to what the session has not', async () => {
    await using site = await startSession(few);
    const s1 = site.directory.get('s1');
    if (s1?.status === 'active') site.directory.set('headless', { ...s1, vnc: null });
    const screen = site.vncUrl('headless').replace('ws:', 'http:');
    const { status, headers } = await fetch(screen, of('192.0.2.1'));
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([404, '8']);

    const closedPage = `${site.cdpUrl('s1').replace('/browser/', '/page/')}/B2`;
    expect(await ask(site.port, handshake(closedPage))).toMatchObject({ status: 404, limit: '8' });
  });

  test('does not tell whether the session has a place for a connection', async () => {
    await using site = await startSession({ limits: { connectionsPerSession: 1 } });
    await openSocket(site.cdpUrl('s1'));
    site.revoked.add(holderOf(ADA));
    expect((await refusal(site.cdpUrl('s1'))).status).toBe(429);
    expect((await refusal(site.cdpUrl('s1', { keyHash: ADA }))).status).toBe(404);
  });
});

test('a driver with its page sockets, DevTools and a viewer never meet a limit', async () => {
  await using site = await startSession({ now });
  const page = `${site.cdpUrl('s1').replace('/browser/', '/page/')}/A1`;
  const json = `${site.cdpUrl('s1').replace('ws:', 'http:')}/json`;
  const state = site.vncUrl('s1').replace('ws:', 'http:').replace('websockify', 'state');
  const statuses: number[] = [];
  const ask = async (url: string) => statuses.push((await fetch(url)).status);
  // All in one window: two drivers connect, 60 pages have sockets, and a minute of polling.
  for (let n = 0; n < 2; n += 1) await openSocket(site.cdpUrl('s1'));
  await Promise.all(Array.from({ length: 60 }, () => openSocket(page)));
  for (let second = 0; second < 60; second += 1)
    for (const url of [`${json}/list`, `${json}/version`, state]) await ask(url);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(site.gateway.counters().refused).toEqual({});
});

describe('connections', () => {
  test('are limited per organization: another one still finds places', async () => {
    const few = { connections: 10, connectionsPerOrganization: 3, connectionsPerSession: 2 };
    await using site = await startSession({ limits: few });
    const s1 = site.directory.get('s1');
    if (s1 !== undefined) site.directory.set('s2', s1);
    const first = await openSocket(site.cdpUrl('s1'));
    await openSocket(site.cdpUrl('s1'));
    await openSocket(site.cdpUrl('s2'));
    expect(await refusal(site.vncUrl('s2'))).toMatchObject({
      status: 429,
      body: { error: 'RATE_LIMIT_EXCEEDED', context: { of: 'organization', limit: 3 } },
    });
    const other = site.tickets.issue('cdp', 'another', 's1');
    await openSocket(`${site.http.replace('http', 'ws')}/devtools/browser/${other}`);
    first.socket.close();
    await until(() => site.gateway.counters().open.cdp === 3, 'a free place');
    await openSocket(site.vncUrl('s2'));
  });
});

describe('sockets of one address', () => {
  test('that are no connections are limited, and connections are not counted', async () => {
    await using site = await startSession({ limits: { socketsPerAddress: 3 } });
    for (let n = 0; n < 5; n += 1) await openSocket(site.cdpUrl('s1'));
    const idle = await Promise.all([hold(site.port), hold(site.port), hold(site.port)]);
    expect(await isClosed(await hold(site.port))).toBe(true);
    await expect(openSocket(site.cdpUrl('s1'))).rejects.toThrow();
    idle[0]?.destroy();
    await until(() => idle[0]?.closed ?? false, 'one closed');
    await openSocketSoon(site.cdpUrl('s1'));
    for (const socket of idle) socket.destroy();
  });

  test('are limited on the TLS listener too, from before the handshake on', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gateway-'));
    const { key, cert } = await ensureCertificate(folder);
    await rm(folder, { recursive: true });
    await using site = await startSession({
      tls: { host: '127.0.0.1', port: 0, key, cert },
      limits: { socketsPerAddress: 2 },
    });
    const port = site.gateway.tlsAddress?.port ?? 0;
    const url = `wss://127.0.0.1:${port}${new URL(site.cdpUrl('s1')).pathname}`;
    for (let n = 0; n < 4; n += 1) await openSocket(url, { insecure: true });
    const idle = await Promise.all([hold(port), hold(port)]);
    expect(await isClosed(await hold(port))).toBe(true);
    for (const socket of idle) socket.destroy();
    await openSocketSoon(url);
  });

  test('behind a trusted proxy its open requests are, by the client’s address', async () => {
    const lookup = Promise.withResolvers<null>();
    await using site = await startSession({
      limits: { socketsPerAddress: 2 },
      trustedProxies: ['127.0.0.1'],
      sessions: { find: () => lookup.promise },
    });
    const from = (address: string) =>
      handshake(site.cdpUrl('s1')).replace('Host', `X-Forwarded-For: ${address}\r\nHost`);
    const waiting = [await hold(site.port), await hold(site.port)];
    for (const socket of waiting) socket.write(from('192.0.2.1'));
    await until(() => site.gateway.counters().open.cdp === 2, 'two handshakes');
    expect((await ask(site.port, from('192.0.2.1'))).status).toBe(429);
    const other = await hold(site.port);
    other.write(from('192.0.2.2'));
    await until(() => site.gateway.counters().open.cdp === 3, 'another client’s');
    for (const socket of [...waiting, other]) socket.destroy();
    lookup.resolve(null);
  });
});

function withProtocol(request: string, protocol: string): string {
  return request.replace('Sec-WebSocket-Key', `Sec-WebSocket-Protocol: ${protocol}\r\n$&`);
}

/** A socket that is connected and says nothing. */
async function hold(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}

async function isClosed(socket: Socket): Promise<boolean> {
  socket.resume();
  await until(() => socket.closed, 'the socket closed');
  return true;
}

/** The gateway notices a closed socket a moment after its client. */
async function openSocketSoon(url: string): Promise<void> {
  for (;;) {
    const opened = await openSocket(url, { insecure: true }).catch(() => null);
    if (opened !== null) return;
  }
}

/** Sends these bytes on a socket of their own; the head of the answer. */
async function ask(port: number, bytes: string): Promise<Told> {
  const socket = await hold(port);
  socket.write(bytes);
  let head = '';
  socket.on('data', (chunk: Buffer) => (head += chunk.toString('latin1')));
  await until(() => head.includes('\r\n\r\n') || socket.closed, 'the answer');
  socket.destroy();
  const header = (name: string) =>
    new RegExp(`^x-ratelimit-${name}: (\\d+)\\r$`, 'im').exec(head)?.[1] ?? 'none';
  return {
    status: Number(head.slice(9, 12)),
    limit: header('limit'),
    remaining: header('remaining'),
    reset: header('reset'),
  };
}
