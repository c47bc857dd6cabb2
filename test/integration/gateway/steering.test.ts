import { expect, test } from 'vitest';
import type { SessionLookup } from '#src/roles/gateway/access/session-directory.ts';
import {
  frame,
  handshake,
  openRaw,
  openSocket,
  refusal,
  startSession,
  until,
} from '#test/support/gateway.fixture.ts';

const HOUR = 3_600_000;
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

type Site = Awaited<ReturnType<typeof startSession>>;

/** What the directory says of `s1` from now on, beside that it is active. */
function set(site: Site, more: Pick<SessionLookup, 'handoff' | 'shares' | 'sequence'>): void {
  const { browser, screen } = site;
  const active = { status: 'active', cdp: browser.endpoint, vnc: screen.endpoint } as const;
  site.directory.set('s1', { ...active, ...more });
}

/** A person has taken `h1`; the next lookups say so, and so does an event. */
function take(site: Site, sequence: number, ms = HOUR): void {
  const expiresAt = inMs(ms);
  set(site, { handoff: { id: 'h1', status: 'taken', expiresAt }, sequence });
  const untilMs = Date.parse(expiresAt);
  site.gateway.hold('org', 's1', { handoffId: 'h1', untilMs }, sequence);
}

/** The person has given it back. */
function giveBack(site: Site, sequence: number): void {
  set(site, { handoff: { id: 'h1', status: 'completed', expiresAt: inMs(HOUR) }, sequence });
  site.gateway.hold('org', 's1', null, sequence);
}

/** What the browser receives on its connections, together. */
function received(site: Site): string[] {
  const all: string[] = [];
  let known = 0;
  const listen = () => {
    for (; known < site.browser.clients.length; known += 1)
      site.browser.clients[known]?.on('message', (data: Buffer) => all.push(data.toString()));
  };
  listen();
  const timer = setInterval(listen, 1).unref();
  site.browser.sockets
    .values()
    .next()
    .value?.once('close', () => clearInterval(timer));
  return all;
}

test('while a person holds the session no CDP command passes, and all do after, in order', async () => {
  await using site = await startSession();
  const driver = await openSocket(site.cdpUrl('s1'));
  await driver.echoes('before');
  const commands = received(site);
  take(site, 5);
  const sent = Array.from({ length: 500 }, (_, n) => `command ${n}`);
  for (const text of sent) driver.socket.send(text);
  // What the browser says passes: the person's clicks make events.
  site.browser.clients[0]?.send('an event');
  await until(() => driver.messages.at(-1)?.toString() === 'an event', 'the event');
  expect(commands).toEqual([]);
  giveBack(site, 6);
  await until(() => commands.length === sent.length, 'the commands');
  expect(commands).toEqual(sent);
});

test('a client that connects meanwhile is connected, and its commands wait', async () => {
  await using site = await startSession();
  take(site, 5);
  const driver = await openSocket(site.cdpUrl('s1'));
  await until(() => site.browser.clients.length === 1, 'the browser’s socket');
  const commands = received(site);
  driver.socket.send('first');
  // With its first command in one packet with its handshake.
  const eager = await openRawWith(site.cdpUrl('s1'), frame(1, 'eager'));
  await until(() => site.browser.clients.length === 2, 'the second socket');
  site.browser.clients[0]?.send('an event');
  await until(() => driver.messages.length === 1, 'the event');
  expect(commands).toEqual([]);
  giveBack(site, 6);
  await until(() => commands.length === 2, 'both commands');
  expect(commands.toSorted()).toEqual(['eager', 'first']);
  eager.destroy();
});

test('what waits is bounded, and nothing of it is lost', async () => {
  await using site = await startSession();
  const driver = await openSocket(site.cdpUrl('s1'));
  await driver.echoes('before');
  take(site, 5);
  const part = 'x'.repeat(256 * 1024);
  for (let n = 0; n < 64; n += 1) driver.socket.send(`${n} ${part}`);
  let read = -1;
  await until(() => {
    const before = read;
    read = site.gateway.counters().bytesIn;
    return read === before && driver.socket.bufferedAmount > 0;
  }, 'the client held back');
  expect(read).toBeLessThan(1024 * 1024);
  giveBack(site, 6);
  await until(() => driver.messages.length === 65, 'all echoes');
  expect(driver.messages.slice(1).map((echo) => Number(echo.toString().split(' ')[0]))).toEqual(
    Array.from({ length: 64 }, (_, n) => n),
  );
});

test('holds that come and go while much is sent lose nothing and change no order', async () => {
  await using site = await startSession();
  const driver = await openSocket(site.cdpUrl('s1'));
  await driver.echoes('before');
  const count = 300;
  const part = 'x'.repeat(64 * 1024);
  for (let n = 0; n < count; n += 1) driver.socket.send(`${n} ${part}`);
  let sequence = 5;
  while (driver.messages.length < count + 1) {
    const before = site.gateway.counters().bytesIn;
    take(site, (sequence += 1));
    await new Promise((resolve) => setImmediate(resolve));
    giveBack(site, (sequence += 1));
    await until(
      () => site.gateway.counters().bytesIn > before || driver.messages.length === count + 1,
      'more of it',
    );
  }
  expect(sequence).toBeGreaterThan(10);
  expect(driver.messages.slice(1).map((echo) => Number(echo.toString().split(' ')[0]))).toEqual(
    Array.from({ length: count }, (_, n) => n),
  );
});

test('automation goes on when the hand-off’s time is over, without an event', async () => {
  await using site = await startSession();
  const driver = await openSocket(site.cdpUrl('s1'));
  const start = Date.now();
  take(site, 5, 300);
  await driver.echoes('late');
  expect(Date.now() - start).toBeGreaterThanOrEqual(250);
});

test('a client that is gone is not missed, and its commands come in its place', async () => {
  await using site = await startSession();
  const driver = await openSocket(site.cdpUrl('s1'));
  await driver.echoes('before');
  const commands = received(site);
  take(site, 5);
  driver.socket.send('the last');
  driver.socket.close();
  giveBack(site, 6);
  await until(() => commands.length === 1, 'the command');
  await site.isClean();
});

const hello = Buffer.from('RFB 003.008\n');
const start = Buffer.concat([hello, Buffer.from([2]), Buffer.alloc(16, 9), Buffer.from([1])]);
const key = (symbol: number) => Buffer.from([4, 1, 0, 0, 0, 0, 0, symbol]);
const update = (n: number) => Buffer.from([3, 0, 0, n, 0, 0, 0, 1, 0, 1]);

/** A viewer after its handshake, and what its screen has received of it since. */
async function openViewer(site: Site, url: string) {
  const known = new Set(site.screen.sockets);
  const viewer = await openSocket(url);
  await until(() => [...site.screen.sockets].some((one) => !known.has(one)), 'the screen’s socket');
  const [screen] = [...site.screen.sockets].filter((one) => !known.has(one));
  const bytes: Buffer[] = [];
  screen?.on('data', (chunk) => bytes.push(chunk));
  const seen = () => Buffer.concat(bytes).subarray(start.length);
  viewer.socket.send(start);
  await until(() => Buffer.concat(bytes).length === start.length, 'the handshake');
  return {
    ...viewer,
    /** Sends the messages; the last one passes always. @returns what arrived since the handshake */
    async sends(...messages: Buffer[]): Promise<Buffer> {
      const last = messages.at(-1) ?? hello;
      for (const message of messages) viewer.socket.send(message);
      await until(() => seen().subarray(-last.length).equals(last), 'the last message');
      return seen();
    },
  };
}

test('while a person holds the session, that person alone steers by VNC', async () => {
  await using site = await startSession();
  const other = await openViewer(site, site.vncUrl('s1'));
  expect(await other.sends(key(1), update(1))).toEqual(Buffer.concat([key(1), update(1)]));
  take(site, 5);
  const grant = { kind: 'handoff', id: 'h1' } as const;
  const person = await openViewer(site, site.vncUrl('s1', { grant }));
  expect(await person.sends(key(7), update(7))).toEqual(Buffer.concat([key(7), update(7)]));
  const watched = Buffer.concat([key(1), update(1), update(2)]);
  expect(await other.sends(key(2), update(2))).toEqual(watched);
  const late = await openViewer(site, site.vncUrl('s1'));
  expect(await late.sends(key(3), update(3))).toEqual(update(3));

  giveBack(site, 6);
  site.gateway.closeGrant('org', 's1', grant);
  expect(await person.closed).toEqual({ code: 4022, reason: 'handoff_ended' });
  expect(await refusal(site.vncUrl('s1', { grant }))).toMatchObject({
    status: 410,
    body: { error: 'SHARE_ENDED' },
  });
  expect(await other.sends(key(4), update(4))).toEqual(Buffer.concat([watched, key(4), update(4)]));
});

test('a share shows the screen, or also steers it, until it ends', async () => {
  const used: string[] = [];
  await using site = await startSession({ onShareUse: (_session, id) => used.push(id) });
  const shares = [
    { id: 'watch', mode: 'view', expiresAt: inMs(HOUR) },
    { id: 'steer', mode: 'control', expiresAt: inMs(HOUR) },
  ] as const;
  set(site, { shares });
  const url = (id: string) => site.vncUrl('s1', { grant: { kind: 'share', id } });
  const watching = await openViewer(site, url('watch'));
  const steering = await openViewer(site, url('steer'));
  expect(await watching.sends(key(1), update(1))).toEqual(update(1));
  expect(await steering.sends(key(2), update(2))).toEqual(Buffer.concat([key(2), update(2)]));
  expect(used).toEqual(['watch', 'steer']);

  take(site, 5);
  const taken = { handoff: { id: 'h1', status: 'taken', expiresAt: inMs(HOUR) }, shares } as const;
  set(site, { ...taken, sequence: 5 });
  expect(await steering.sends(key(3), update(3))).toEqual(
    Buffer.concat([key(2), update(2), update(3)]),
  );

  watching.socket.send(Buffer.from([77]));
  expect(await watching.closed).toEqual({ code: 4023, reason: 'not_understood' });
  set(site, { shares: shares.slice(0, 1) });
  site.gateway.closeGrant('org', 's1', { kind: 'share', id: 'steer' });
  expect(await steering.closed).toEqual({ code: 4021, reason: 'share_ended' });
  expect(await refusal(url('steer'))).toMatchObject({
    status: 410,
    body: { error: 'SHARE_ENDED' },
  });
  set(site, { shares: [{ id: 'watch', mode: 'view', expiresAt: inMs(-1) }] });
  expect((await refusal(url('watch'))).status).toBe(410);
});

test('the page of a share is embedded where its organization says so, and no other page is', async () => {
  const app = 'https://app.example.com';
  await using site = await startSession({ allowedOrigins: async () => [app] });
  set(site, { shares: [{ id: 'watch', mode: 'view', expiresAt: inMs(HOUR) }] });
  const pageOf = (url: string) => url.replace(/^ws/, 'http').replace('websockify', '');
  const own = pageOf(site.vncUrl('s1'));
  const shared = pageOf(site.vncUrl('s1', { grant: { kind: 'share', id: 'watch' } }));
  const policyOf = ({ headers }: Response) => headers.get('content-security-policy');
  expect(policyOf(await fetch(own))).toContain("frame-ancestors 'none'");
  expect(policyOf(await fetch(shared))).toContain(`frame-ancestors ${app}`);
  expect(await (await fetch(`${own}state`)).json()).toMatchObject({ mode: 'control' });
  expect(await (await fetch(`${shared}state`)).json()).toMatchObject({ mode: 'view' });

  set(site, { shares: [] });
  const page = await fetch(shared);
  expect(page.status).toBe(410);
  expect(await page.text()).toContain('viewer.js');
  const state = await fetch(`${shared}state`);
  expect(state.status).toBe(410);
  expect(await state.json()).toMatchObject({ error: 'SHARE_ENDED' });
});

test('a gateway that cannot read the allowed origins lets no page embed a share', async () => {
  await using site = await startSession({
    allowedOrigins: () => Promise.reject(new Error('the event store is away')),
  });
  set(site, { shares: [{ id: 'watch', mode: 'view', expiresAt: inMs(HOUR) }] });
  const shared = site.vncUrl('s1', { grant: { kind: 'share', id: 'watch' } });
  const page = await fetch(shared.replace(/^ws/, 'http').replace('websockify', ''));
  expect(page.status).toBe(200);
  expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
});

test('a ticket of a share opens no DevTools socket', async () => {
  await using site = await startSession();
  set(site, { shares: [{ id: 'steer', mode: 'control', expiresAt: inMs(HOUR) }] });
  const ticket = site.tickets.issue('cdp', 'org', 's1', {
    epoch: 0,
    holder: null,
    grant: { kind: 'share', id: 'steer' },
  });
  const url = site.cdpUrl('s1').replace(/[^/]+$/, ticket);
  expect((await refusal(url)).status).toBe(404);
});

/** A bare socket whose first frame comes in one packet with its handshake. */
async function openRawWith(url: string, first: Buffer) {
  return await openRaw(url, Buffer.concat([Buffer.from(handshake(url)), first]));
}
