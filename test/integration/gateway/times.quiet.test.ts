import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { openSocket, startSession, until } from '#test/support/gateway.fixture.ts';
import { startDriven } from '#test/support/gateway/driven-session.ts';
import { settledWithin } from '#test/support/settled-within.ts';

test('disposal closes every socket within two seconds, also those that do not read', async () => {
  await using site = await startSession();
  const driver = await openSocket(site.cdpUrl('s1'));
  const viewer = await openSocket(site.vncUrl('s1'));
  const paused = await openSocket(site.vncUrl('s1'));
  paused.socket.pause();
  await settledWithin(2_000, site.gateway[Symbol.asyncDispose]());
  expect(await viewer.closed).toEqual({ code: 4015, reason: 'gateway_closing' });
  expect((await driver.closed).code).toBe(1006);
  paused.socket.terminate();
  await site.isClean();
  await expect(fetch(site.http)).rejects.toThrow();
});

test('an open connection of a share ends with its time', async () => {
  await using site = await startSession();
  const { browser, screen } = site;
  const expiresAt = new Date(Date.now() + 2_000).toISOString();
  const active = { status: 'active', cdp: browser.endpoint, vnc: screen.endpoint } as const;
  site.directory.set('s1', { ...active, shares: [{ id: 'short', mode: 'view', expiresAt }] });
  const viewer = await openSocket(site.vncUrl('s1', { grant: { kind: 'share', id: 'short' } }));
  expect(await viewer.closed).toEqual({ code: 4021, reason: 'share_ended' });
  await site.isClean();
});

test.each(['cdpUrl', 'vncUrl'] as const)(
  'a client of %s that uses its connection is not idle',
  async (kind) => {
    await using site = await startSession({ limits: { sweepMs: 10, idleMs: 1_000 } });
    const client = await openSocket(site[kind]('s1'));
    const twiceAsLong = performance.now() + 2_000;
    let sent = 0;
    while (performance.now() < twiceAsLong) {
      client.socket.send(Buffer.from(`${sent}`));
      sent += 1;
      const before = site.gateway.counters().bytesIn;
      await until(() => site.gateway.counters().bytesIn > before || sent > 1e6, 'bytes');
    }
    expect(site.gateway.counters().open[kind === 'cdpUrl' ? 'cdp' : 'vnc']).toBe(1);
    client.socket.close();
    await site.isClean();
  },
);

/** Longer than the gateway keeps a connection of other requests: 5 s, and Node's 1 s. */
const STANDS_STILL_MS = 6_500;

/** Stops this process, without work for the processor. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
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

  test('comes on a kept connection though the gateway stands still meanwhile', async () => {
    const site = await startDriven();
    expect((await site.command('GET', '/url')).status).toBe(200);
    const sent = site.begin('GET', '/url');
    // By then its bytes have left, and the gateway, which is in this process, has read none.
    sent.once('socket', () => process.nextTick(standStill, STANDS_STILL_MS));
    expect((await site.answerTo(sent.end())).status).toBe(200);
    expect(sent.reusedSocket).toBe(true);
  });
});
