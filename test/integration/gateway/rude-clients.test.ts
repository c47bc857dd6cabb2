import { connect } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  frame,
  handshake,
  openRaw,
  openSocket,
  startSession,
  until,
} from '#test/support/gateway.fixture.ts';
import { eventually } from '#test/support/service/service.ts';

/** Both kinds of socket must leave nothing behind, whatever a client does. */
const kinds = ['cdpUrl', 'vncUrl'] as const;

describe.each(kinds)('a client of %s', (kind) => {
  test('that sends frames after its Close', async () => {
    await using site = await startSession();
    const client = await openRaw(site[kind]('s1'));
    client.write(Buffer.concat([frame(8, '\x03\xe8'), frame(8, '\x03\xe8'), frame(2, 'more')]));
    await site.isClean();
  });

  test('that half-closes and stays', async () => {
    await using site = await startSession();
    const client = await openRaw(site[kind]('s1'));
    client.end();
    await site.isClean();
  });

  test('that half-closes and leaves a lot unread', async () => {
    await using site = await startSession({ limits: { sweepMs: 10, stalledMs: 100 } });
    const client = await openRaw(site[kind]('s1'));
    client.pause();
    await flood(site, kind);
    client.end();
    await site.isClean();
  });

  test('that resets', async () => {
    await using site = await startSession();
    const client = await openRaw(site[kind]('s1'));
    client.write(frame(2, 'hello'));
    client.resetAndDestroy();
    await site.isClean();
  });

  test('that resets before the answer', async () => {
    await using site = await startSession();
    for (let n = 0; n < 20; n += 1) {
      const socket = connect({ host: '127.0.0.1', port: site.port });
      socket.on('error', () => {});
      await new Promise((resolve) => socket.write(handshake(site[kind]('s1')), resolve));
      socket.resetAndDestroy();
    }
    await until(() => site.lookups.length > 0, 'one of them at least seen');
    await site.isClean();
  });

  test('that stays silent beyond the idle limit', async () => {
    await using site = await startSession({ limits: { sweepMs: 10, idleMs: 150 } });
    const client = await openRaw(site[kind]('s1'));
    let said = Buffer.alloc(0);
    client.on('data', (chunk) => (said = Buffer.concat([said, chunk])));
    await site.isClean();
    if (kind === 'vncUrl') expect(said.subarray(2, 4).readUInt16BE()).toBe(4014);
    client.destroy();
  });

  test('that never reads is cut off when its bytes have waited too long', async () => {
    await using site = await startSession({ limits: { sweepMs: 10, stalledMs: 150 } });
    const client = await openSocket(site[kind]('s1'));
    client.socket.pause();
    const sent = await flood(site, kind);
    await until(() => site.gateway.counters().bytesOut > 0, 'the flood');
    await site.isClean();
    // What the gateway read from the browser is bounded, however much the browser sent.
    expect(site.gateway.counters().bytesOut).toBeLessThan(sent);
    client.socket.resume();
    const { code } = await client.closed;
    expect([1006, 4008]).toContain(code);
  });
});

test('a client that does not read a document keeps its place, until it is cut off', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => timers.mockRestore());
  /** What is to happen after 120 s and more. */
  const late = () => timers.mock.calls.find(([, ms = 0]) => ms > 120_000)?.[0];
  await using site = await startSession({ limits: { connectionsPerSession: 1 } });
  const path = `${new URL(site.cdpUrl('s1')).pathname}/json/protocol`;
  site.browser.changed['/json/protocol'] = 'x'.repeat(7 * 1024 * 1024);
  const client = connect({ host: '127.0.0.1', port: site.port }).pause();
  client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await until(() => late() !== undefined, 'a bound of its time');
  const other = await fetch(`${site.http}${path}`);
  expect([other.status, await other.json()]).toMatchObject([429, { context: { of: 'session' } }]);

  late()?.();
  await site.isClean();
  delete site.browser.changed['/json/protocol'];
  expect((await fetch(`${site.http}${path}`)).status).toBe(200);
  client.destroy();
});

test('documents that an organization does not read have a share of the memory', async () => {
  const documentBytes = 3 * 8 * 1024 * 1024;
  await using site = await startSession({ limits: { documentBytes } });
  const at = `${new URL(site.cdpUrl('s1')).pathname}/json`;
  site.browser.changed['/json/protocol'] = 'x'.repeat(7 * 1024 * 1024);
  const client = connect({ host: '127.0.0.1', port: site.port }).pause();
  client.write(`GET ${at}/protocol HTTP/1.1\r\nHost: x\r\n\r\n`);
  let refused: unknown;
  await eventually(async () => {
    const other = await fetch(`${site.http}${at}/protocol`);
    refused = await other.json();
    return other.status === 429;
  }, 'the share is used up');
  const limit = documentBytes / 3;
  expect(refused).toMatchObject({ context: { of: 'documents', limit } });
  expect((await fetch(`${site.http}${at}/version`)).status).toBe(200);
  client.destroy();
  await site.isClean();
  expect((await fetch(`${site.http}${at}/protocol`)).status).toBe(200);
});

describe('a browser', () => {
  test('that half-closes, resets or dies ends its driver', async () => {
    await using site = await startSession();
    for (const way of ['end', 'resetAndDestroy', 'destroy'] as const) {
      const client = await openSocket(site.cdpUrl('s1'));
      await until(() => site.browser.sockets.size === 1, 'the browser’s leg');
      for (const socket of site.browser.sockets) socket[way]();
      expect((await client.closed).code).toBe(1006);
      await site.isClean();
    }
  });

  test('that does not read holds its driver back, and gets all of it later', async () => {
    await using site = await startSession();
    const driver = await openSocket(site.cdpUrl('s1'));
    await driver.echoes('before');
    const [browser] = site.browser.clients;
    browser?.pause();
    const count = 64;
    const part = Buffer.alloc(512 * 1024, 1);
    for (let n = 0; n < count; n += 1) driver.socket.send(part);
    let taken = -1;
    await until(() => {
      const before = taken;
      taken = site.gateway.counters().bytesIn;
      const isHeldBack = taken === before && driver.socket.bufferedAmount > 0;
      return isHeldBack || taken > count * part.length;
    }, 'the driver held back');
    expect(taken).toBeLessThan(count * part.length);
    browser?.resume();
    await until(() => driver.messages.length === 1 + count, 'all echoes');
    driver.socket.close();
    await site.isClean();
  });

  test('that sends a Close is passed on before the end', async () => {
    await using site = await startSession();
    const client = await openSocket(site.cdpUrl('s1'));
    site.browser.clients[0]?.send('last words');
    site.browser.clients[0]?.close(1001, 'shutting down');
    expect(await client.closed).toEqual({ code: 1001, reason: 'shutting down' });
    expect(client.messages.map(String)).toEqual(['last words']);
    await site.isClean();
  });
});

/** The upstream sends 64 MB to one client that does not read; returns how much it offered. */
async function flood(
  site: Awaited<ReturnType<typeof startSession>>,
  kind: (typeof kinds)[number],
): Promise<number> {
  const bytes = 64 * 1024 * 1024;
  if (kind === 'vncUrl') (await site.screen.socket()).write(Buffer.alloc(bytes));
  else {
    await until(() => site.browser.clients.length > 0, 'a client of the browser');
    site.browser.clients.at(-1)?.send(Buffer.alloc(bytes));
  }
  return bytes;
}
