import { describe, expect, test } from 'vitest';
import { FailureReason, StopReason } from '#events/session.ts';
import { closeCodes } from '#src/roles/gateway/connections/close-codes.ts';
import { frame, openRaw, openSocket, startSession, until } from '#test/support/gateway.fixture.ts';

test('RFB passes both ways in binary messages of any length', async () => {
  await using site = await startSession();
  const viewer = await openSocket(site.vncUrl('s1'), { protocols: ['binary', 'base64'] });
  expect(viewer.socket.protocol).toBe('binary');
  (await site.screen.socket()).write('RFB 003.008\n');
  await until(() => viewer.messages.length > 0, 'the greeting');
  expect(viewer.messages[0]?.toString()).toBe('RFB 003.008\n');
  for (const part of ['RFB', ' 003', '.008\n']) viewer.socket.send(Buffer.from(part));
  await until(() => Buffer.concat(site.screen.received).length === 12, 'the answer');
  expect(Buffer.concat(site.screen.received).toString()).toBe('RFB 003.008\n');
  viewer.socket.close();
  expect((await viewer.closed).code).toBe(1005);
  await site.isClean();
});

test('a viewer without a subprotocol is served, and one with others only as well', async () => {
  await using site = await startSession();
  const plain = await openSocket(site.vncUrl('s1'));
  expect(plain.socket.protocol).toBe('');
  plain.socket.close();
  const raw = await openRaw(site.vncUrl('s1'));
  raw.destroy();
  await site.isClean();
});

test('a text message closes the connection', async () => {
  await using site = await startSession();
  const viewer = await openSocket(site.vncUrl('s1'));
  viewer.socket.send('hello');
  expect((await viewer.closed).code).toBe(1003);
  expect(site.screen.received).toEqual([]);
  await site.isClean();
});

test('a clipboard of more than 1 MiB closes the connection, and says why', async () => {
  await using site = await startSession();
  const viewer = await openSocket(site.vncUrl('s1'));
  const text = Buffer.alloc(8);
  text.writeUInt8(6);
  text.writeUInt32BE(1024 ** 2 + 1, 4);
  viewer.socket.send(Buffer.concat([Buffer.from('RFB 003.008\n'), Buffer.from([1, 1]), text]));
  expect(await viewer.closed).toEqual({ code: 4024, reason: 'text_too_long' });
  await site.isClean();
});

test('a message over the limit closes the connection', async () => {
  await using site = await startSession({ limits: { messageBytesMax: 1000 } });
  const viewer = await openSocket(site.vncUrl('s1'));
  viewer.socket.send(Buffer.alloc(1001));
  expect((await viewer.closed).code).toBe(1009);
  await site.isClean();
});

test.each(Object.entries(closeCodes))('a session that ended: %s', async (reason, { code }) => {
  await using site = await startSession();
  const viewer = await openSocket(site.vncUrl('s1'));
  site.gateway.closeSession('org', 's1', reason);
  expect(await viewer.closed).toEqual({ code, reason });
  await site.isClean();
});

test('an unknown end reason closes as `failed`', async () => {
  await using site = await startSession();
  const viewer = await openSocket(site.vncUrl('s1'));
  site.gateway.closeSession('org', 's1', 'meteorite');
  expect(await viewer.closed).toEqual({ code: 4004, reason: 'failed' });
});

test('every end reason of a session has its own close code', () => {
  const words = [...StopReason.anyOf, ...FailureReason.anyOf].map((one) => one.const);
  expect(words).toContain('browser_closed');
  expect(words.filter((word) => !Object.hasOwn(closeCodes, word))).toEqual([]);
});

test('a close code is a number between 4001 and 4099 of one reason only', () => {
  const codes = Object.values(closeCodes).map(({ code }) => code as number);
  expect(new Set(codes).size).toBe(codes.length);
  expect(Math.min(...codes)).toBe(4001);
  expect(Math.max(...codes)).toBeLessThanOrEqual(4099);
});

test('a closed screen gives the session’s end reason if known, else `browser_gone`', async () => {
  await using site = await startSession();
  const first = await openSocket(site.vncUrl('s1'));
  (await site.screen.socket()).end();
  expect(await first.closed).toEqual({ code: 4005, reason: 'browser_gone' });
  await site.isClean();
  const second = await openSocket(site.vncUrl('s1'));
  const socket = await site.screen.socket();
  site.directory.set('s1', { status: 'ended', reason: 'out_of_memory' });
  socket.resetAndDestroy();
  expect(await second.closed).toEqual({ code: 4010, reason: 'out_of_memory' });
  await site.isClean();
});

describe('a password', () => {
  const refused = [0, 0, 0, 1];
  const tooMany = [0, 0, 0, 2];
  const types = [2, 16, 2];
  const choice = [2];
  const challenge = Array<number>(16).fill(9);

  test.each([
    { version: '3.8', screen: [...types, ...challenge, ...refused, 0, 0, 0, 1, 33], choice },
    { version: '3.8, too many', screen: [...types, ...challenge, ...tooMany], choice },
    { version: '3.7', screen: [...types, ...challenge, ...refused], choice },
    { version: '3.3', screen: [0, 0, 0, 2, ...challenge, ...refused], choice: [] },
  ])(
    'that is wrong closes as `wrong_password` (RFB $version)',
    async ({ version, screen, choice }) => {
      expect(await endOf(version, screen, choice)).toEqual({
        code: 4018,
        reason: 'wrong_password',
      });
    },
  );

  test('that was right is not the reason when the screen closes later', async () => {
    const taken = [0, 0, 0, 0];
    const screen = [...types, ...challenge, ...taken, ...challenge, ...refused];
    expect(await endOf('3.8', screen, choice)).toEqual({ code: 4005, reason: 'browser_gone' });
  });

  test('that was not required is not the reason when the screen closes', async () => {
    const noTypes = [0, ...challenge, ...refused];
    expect(await endOf('3.8', noTypes, [])).toEqual({ code: 4005, reason: 'browser_gone' });
    const other = [...types, ...challenge, ...refused];
    expect(await endOf('3.8', other, [16])).toEqual({ code: 4005, reason: 'browser_gone' });
  });

  /** How a viewer is closed whose screen says this, byte for byte, and ends. */
  async function endOf(version: string, screen: number[], choice: number[]) {
    await using site = await startSession();
    const viewer = await openSocket(site.vncUrl('s1'));
    const socket = await site.screen.socket();
    const receivedBytes = () => Buffer.concat(viewer.messages).length;
    socket.setNoDelay(true).write('RFB 003.008\n');
    await until(() => receivedBytes() === 12, 'the greeting');
    const answer = Buffer.from(`RFB 003.00${version[2]}\n`);
    for (const byte of [...answer, ...choice]) viewer.socket.send(Buffer.from([byte]));
    await until(
      () => Buffer.concat(site.screen.received).length === answer.length + choice.length,
      'the answer',
    );
    for (const [index, byte] of screen.entries()) {
      socket.write(Buffer.from([byte]));
      await until(() => receivedBytes() === 12 + index + 1, 'the byte');
    }
    socket.end();
    return await viewer.closed;
  }
});

test('a viewer that answers no ping and takes no bytes is `client_gone`', async () => {
  await using site = await startSession({ limits: { sweepMs: 5, pingEveryMs: 20 } });
  const viewer = await openRaw(site.vncUrl('s1'));
  viewer.resume();
  await site.isClean();
  viewer.destroy();
});

test('a viewer stays while it answers pings or bytes flow', async () => {
  await using site = await startSession({ limits: { sweepMs: 5, pingEveryMs: 20 } });
  const answering = await openSocket(site.vncUrl('s1'));
  let pings = 0;
  answering.socket.on('ping', () => (pings += 1));
  await until(() => pings >= 10, 'ten pings');
  answering.socket.close();
  await site.isClean();

  const busy = await openRaw(site.vncUrl('s1'));
  busy.resume();
  const start = performance.now();
  let sent = 0;
  while (performance.now() - start < 300) {
    busy.write(frame(2, 'x'));
    sent += 1;
    await until(() => Buffer.concat(site.screen.received).length >= sent, 'the byte');
  }
  expect(site.gateway.counters().open.vnc).toBe(1);
  busy.destroy();
  await site.isClean();
});

test('a screen that does not read pauses its viewer and gets all bytes later', async () => {
  await using site = await startSession();
  const viewer = await openSocket(site.vncUrl('s1'));
  const screen = await site.screen.socket();
  screen.pause();
  const part = Buffer.alloc(512 * 1024, 1);
  for (let n = 0; n < 64; n += 1) viewer.socket.send(part);
  let taken = -1;
  await until(() => {
    const before = taken;
    taken = site.gateway.counters().bytesIn;
    return taken > 0 && taken === before && viewer.socket.bufferedAmount > 0;
  }, 'the viewer held back');
  expect(taken).toBeLessThan(64 * part.length);
  screen.resume();
  await until(
    () => site.screen.received.reduce((sum, { length }) => sum + length, 0) === 64 * part.length,
    'all of it',
  );
  viewer.socket.close();
  await site.isClean();
});

test('a slow viewer pauses the screen and gets all bytes', async () => {
  await using site = await startSession({ limits: { bufferedBytesMax: 100_000 } });
  const viewer = await openSocket(site.vncUrl('s1'));
  const screen = await site.screen.socket();
  viewer.socket.pause();
  const all = 32 * 1024 * 1024;
  screen.write(Buffer.alloc(all, 2));
  let taken = -1;
  await until(() => {
    const before = taken;
    taken = site.gateway.counters().bytesOut;
    return taken > 0 && taken === before;
  }, 'the screen held back');
  expect(taken).toBeLessThan(all);
  viewer.socket.resume();
  await until(
    () => viewer.messages.reduce((sum, { length }) => sum + length, 0) === all,
    'all of it',
  );
  viewer.socket.close();
  await site.isClean();
});
