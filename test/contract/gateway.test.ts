import { connect } from 'node:net';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mkdtemp, rm } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { ensureCertificate } from '#src/roles/gateway/certificate.ts';
import type { SessionLookup } from '#src/roles/gateway/access/session-directory.ts';
import {
  openSocket,
  refusal,
  startSession,
  startTestGateway,
  until,
} from '#test/support/gateway.fixture.ts';

/** The headers of a proxy that terminates TLS. */
const proxied = { headers: { 'x-forwarded-proto': 'https' } };

describe('a connection', () => {
  test('a client reaches its browser and the first command is answered', async () => {
    await using site = await startSession();
    const client = await openSocket(site.cdpUrl('s1'));
    await client.echoes('{"id":1,"method":"Browser.getVersion"}');
    expect(site.gateway.counters().open).toEqual({ cdp: 1, vnc: 0 });
    client.socket.close(1000);
    expect((await client.closed).code).toBe(1000);
    await site.isClean();
    expect(site.gateway.counters()).toMatchObject({ total: { cdp: 1, vnc: 0 } });
    expect(site.gateway.counters().bytesIn).toBeGreaterThan(38);
  });

  test('the browser sees its own host, no origin and no other header of the client', async () => {
    await using site = await startSession();
    const headers = { Origin: 'https://evil.example', Cookie: 'a=b', Authorization: 'Bearer x' };
    const client = await openSocket(site.cdpUrl('s1'), { headers });
    await client.echoes('hello');
    const seen = site.browser.handshakes[0];
    expect(seen?.host).toBe(`127.0.0.1:${site.browser.endpoint.port}`);
    expect(Object.keys(seen ?? {}).toSorted()).toEqual([
      'connection',
      'host',
      'sec-websocket-key',
      'sec-websocket-version',
      'upgrade',
    ]);
    client.socket.close();
  });

  test('a frame sent together with the handshake is answered', async () => {
    await using site = await startSession();
    const socket = connect({ host: '127.0.0.1', port: site.port });
    const hello = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]);
    socket.write(
      `GET ${new URL(site.cdpUrl('s1')).pathname} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n` +
        'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    socket.write(hello);
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    await until(() => text.endsWith('\x81\x02hi'), 'the echo after the 101');
    socket.destroy();
    await site.isClean();
  });

  test('a page of the browser has its own socket', async () => {
    await using site = await startSession();
    const client = await openSocket(site.cdpUrl('s1').replace('/browser/', '/page/').concat('/A1'));
    await client.echoes('to the page');
    client.socket.close();
    const unknown = site.cdpUrl('s1').replace('/browser/', '/page/').concat('/B2');
    expect(await refusal(unknown)).toMatchObject({ status: 404, body: { error: 'NOT_FOUND' } });
    await site.isClean();
  });

  test('a large message passes whole', async () => {
    await using site = await startSession();
    const client = await openSocket(site.cdpUrl('s1'));
    const large = Buffer.alloc(8 * 1024 * 1024, 'x');
    client.socket.send(large);
    await until(() => client.messages.length > 0, 'the echo');
    expect(client.messages[0]?.equals(large)).toBe(true);
    client.socket.close();
  });

  test('the TLS listener serves both kinds', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gateway-'));
    const { key, cert } = await ensureCertificate(folder);
    await rm(folder, { recursive: true });
    await using site = await startSession({
      tls: { host: '127.0.0.1', port: 0, key, cert },
      trustedProxies: ['127.0.0.1'],
    });
    const secure = (url: string): string =>
      url.replace(/^ws:\/\/127\.0\.0\.1:\d+/, `wss://127.0.0.1:${site.gateway.tlsAddress?.port}`);
    const client = await openSocket(secure(site.cdpUrl('s1')), { insecure: true });
    await client.echoes('over TLS');
    const viewer = await openSocket(secure(site.vncUrl('s1')), { insecure: true });
    (await site.screen.socket()).write('RFB 003.008\n');
    await until(() => viewer.messages.length > 0, 'the greeting');
    // A document requested by TLS leads to the TLS listener, at the gateway or at a proxy.
    const version = new URL(`${site.cdpUrl('s1')}/json/version`).pathname;
    const [byPlain, byTls, byProxy] = [
      await (await fetch(`${site.http}${version}`)).text(),
      await getInsecure(`https://127.0.0.1:${site.gateway.tlsAddress?.port}${version}`),
      await (await fetch(`${site.http}${version}`, proxied)).text(),
    ];
    expect(byPlain).toContain(`"${site.cdpUrl('s1')}"`);
    for (const text of [byTls, byProxy]) expect(text).toContain(`"${secure(site.cdpUrl('s1'))}"`);

    expect(site.gateway.closeSession('org', 's1', 'user')).toBe(2);
    expect((await viewer.closed).code).toBe(4001);
    await client.closed;
    await site.isClean();
  });
});

describe('the end of a session', () => {
  test('closes its connections at once, and no other session’s', async () => {
    await using site = await startSession();
    const s1 = site.directory.get('s1');
    if (s1 !== undefined) site.directory.set('s2', s1);
    const driver = await openSocket(site.cdpUrl('s1'));
    const viewer = await openSocket(site.vncUrl('s1'));
    const other = await openSocket(site.cdpUrl('s2'));
    site.directory.set('s1', { status: 'ended', reason: 'expired' });
    expect(site.gateway.closeSession('org', 's1', 'expired')).toBe(2);
    expect(await viewer.closed).toEqual({ code: 4002, reason: 'expired' });
    expect((await driver.closed).code).toBe(1006);
    await until(() => site.browser.sockets.size === 1, 'the browser’s leg gone');
    expect((await refusal(site.cdpUrl('s1'))).status).toBe(410);
    await other.echoes('not concerned');
    expect(site.gateway.closeSession('org', 'unknown', 'user')).toBe(0);
  });

  test('refuses a client that is still connecting', async () => {
    const lookup = Promise.withResolvers<SessionLookup>();
    await using site = await startTestGateway({ sessions: { find: () => lookup.promise } });
    const refused = refusal(site.cdpUrl('s1'));
    await until(() => site.gateway.counters().open.cdp === 1, 'the lookup');
    site.gateway.closeSession('org', 's1', 'user');
    // The lookup was answered a moment before the end.
    const unreachable = { host: '127.0.0.1', port: 1, path: '/devtools/browser/x' };
    lookup.resolve({ status: 'active', cdp: unreachable, vnc: unreachable });
    expect(await refused).toMatchObject({
      status: 410,
      body: { context: { ended_reason: 'user' } },
    });
    expect(site.gateway.counters().open.cdp).toBe(0);
  });
});

describe('the end of the gateway', () => {
  test('a draining gateway refuses new clients and keeps its connections', async () => {
    await using site = await startSession();
    const client = await openSocket(site.cdpUrl('s1'));
    site.gateway.drain();
    expect(await refusal(site.cdpUrl('s1'))).toMatchObject({
      status: 503,
      body: { error: 'UNAVAILABLE' },
    });
    expect((await fetch(site.cdpUrl('s1').replace('ws:', 'http:'))).status).toBe(503);
    await client.echoes('still here');
  });

  test('many connections leave no socket and no timer behind', async () => {
    {
      await using site = await startSession();
      for (let n = 0; n < 20; n += 1) {
        const [driver, viewer] = [site.cdpUrl('s1'), site.vncUrl('s1')].map((url) =>
          openSocket(url),
        );
        (await driver)?.socket.close();
        (await viewer)?.socket.terminate();
      }
      await site.isClean();
    }
    await until(() => leftovers().length === 0, 'all sockets and timers gone');
  });
});

describe('access reports and log lines', () => {
  test('each connect and continued use is an access, at most at the set interval', async () => {
    await using site = await startSession({ limits: { sweepMs: 5, accessEveryMs: 100 } });
    const start = performance.now();
    const driver = await openSocket(site.cdpUrl('s1'));
    const viewer = await openSocket(site.vncUrl('s1'));
    expect(site.accesses).toEqual(['s1 cdp', 's1 vnc']);
    for (let n = 0; site.accesses.length < 4; n += 1) await driver.echoes(`message ${n}`);
    expect(performance.now() - start).toBeGreaterThanOrEqual(195);
    expect(site.accesses.slice(2, 4)).toEqual(['s1 cdp', 's1 cdp']);
    viewer.socket.close();
    driver.socket.close();
  });

  test('neither ticket nor path is logged', async () => {
    await using site = await startSession();
    site.directory.set('s2', {
      status: 'active',
      cdp: { host: '127.0.0.1', port: 1, path: '/' },
      vnc: { host: '127.0.0.1', port: 1 },
    });
    await refusal(site.cdpUrl('s2'));
    await refusal(site.vncUrl('s2'));
    const client = await openSocket(site.cdpUrl('s1'));
    client.socket.close();
    await site.isClean();
    const text = site.logged.join('\n');
    expect(text).toContain('connection to browser failed');
    for (const id of ['s1', 's2'])
      for (const kind of ['cdp', 'vnc'] as const)
        expect(text).not.toContain(site.tickets.issue(kind, 'org', id).slice(0, 20));
    expect(text).not.toContain('/devtools/');
  });
});

/** The body of an answer by a server with a self-signed certificate. */
async function getInsecure(url: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    get(url, { rejectUnauthorized: false, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });
}

function leftovers(): string[] {
  return process.getActiveResourcesInfo().filter((name) => /^(TCP|TLS|Timeout)/.test(name));
}
