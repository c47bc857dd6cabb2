import { AsyncResource } from 'node:async_hooks';
import { execFile } from 'node:child_process';
import { generateKeyPair, pbkdf2, webcrypto } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip, zstdCompress } from 'node:zlib';
import { expect, test } from 'vitest';
import { createVirtualTime } from '#test/support/time/virtual-time.ts';

/** Time for tests of what runs wholly in memory: test/support/time. */

const HERE = fileURLToPath(import.meta.url);
const HALF_HOUR_MS = 30 * 60_000;

const run = <Result>(work: () => Promise<Result>) => createVirtualTime(1).run(work);

test('half an hour of waiting passes at once, and timers run in the order of their times', async () => {
  const order: string[] = [];
  const passedMs = await run(async () => {
    const begunAt = Date.now();
    setTimeout(() => order.push('second'), 2_000);
    setTimeout(() => order.push('first'), 1_000);
    await pause(HALF_HOUR_MS);
    return Date.now() - begunAt;
  });
  expect(passedMs).toBe(HALF_HOUR_MS);
  expect(order).toEqual(['first', 'second']);
});

test('a timer that is refreshed runs once, that long after the refresh', async () => {
  const times = await run(async () => {
    const begunAt = performance.now();
    const found: number[] = [];
    const timer = setTimeout(() => found.push(performance.now() - begunAt), 1_000);
    await pause(600);
    timer.refresh();
    await pause(5_000);
    return found;
  });
  expect(times).toEqual([1_600]);
});

test('the same seed gives the same numbers and moments', async () => {
  const draw = () => run(async () => [Math.random(), crypto.randomUUID().length, Date.now()]);
  expect(await draw()).toEqual(await draw());
});

test('the clock shows whole milliseconds, as the real one does', async () => {
  const moment = await run(async () => {
    await pause(1.5);
    return Date.now();
  });
  expect(moment).toBe(Math.floor(moment));
});

test('code outside keeps the real clock', async () => {
  const before = performance.timeOrigin + performance.now();
  await run(() => pause(HALF_HOUR_MS));
  expect(Date.now()).toBeGreaterThanOrEqual(Math.floor(before) - 1_000);
  expect(Date.now() - before).toBeLessThan(HALF_HOUR_MS);
});

const bytes = Buffer.alloc(4 * 1024 ** 2, 'abcdefgh');
const works: [string, () => Promise<unknown>][] = [
  ['a file', () => readFile(HERE)],
  ['compression', () => promisify(gzip)(bytes)],
  ['other compression, three times', () => repeated(() => promisify(zstdCompress)(bytes))],
  ['a digest', () => webcrypto.subtle.digest('SHA-256', bytes)],
  ['a derived key', () => promisify(pbkdf2)('a', 'b', 50_000, 32, 'sha256')],
  ['a key pair', () => promisify(generateKeyPair)('ed25519')],
  ['a child process', () => promisify(execFile)(process.execPath, ['-p', '1'])],
];
async function repeated(work: () => Promise<unknown>): Promise<void> {
  for (let count = 0; count < 3; count += 1) await work();
}

test.each(works)('time stands still for %s', async (_what, work) => {
  const outcome = await run(async () => {
    const begunAt = Date.now();
    const tick = setInterval(() => undefined, 10);
    await work();
    clearInterval(tick);
    return Date.now() - begunAt;
  });
  expect(outcome).toBe(0);
});

test('what waits for nothing fails at once', async () => {
  const never = () => new Promise<never>(() => undefined);
  await expect(run(never)).rejects.toThrow('it waits for what does not happen');
  const busy = () => {
    setInterval(() => undefined, 250);
    return never();
  };
  await expect(run(busy)).rejects.toThrow('it waits for what does not happen');
});

test('a timer that throws fails the work', async () => {
  const work = async () => {
    setTimeout(() => {
      throw new Error('planted');
    }, 1);
    await pause(2);
  };
  await expect(run(work)).rejects.toThrow('a timer threw');
});

test('a connection that others open meanwhile does not matter', async () => {
  await using server = createServer((socket) => socket.destroy());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as { port: number };
  // What an earlier test file has left behind, in this process.
  const connectElsewhere = AsyncResource.bind(() => connect(port, '127.0.0.1'));
  const sockets: Socket[] = [];
  const work = async () => {
    sockets.push(connectElsewhere());
    await pause(HALF_HOUR_MS);
    return 'done';
  };
  expect(await run(work)).toBe('done');
  for (const socket of sockets) socket.destroy();
});

test('a connection is refused', async () => {
  await using server = createServer((socket) => socket.destroy());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as { port: number };
  const sockets: Socket[] = [];
  const work = async () => {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    await once(socket, 'close');
  };
  await expect(run(work)).rejects.toThrow('virtual time has no network');
  for (const socket of sockets) socket.destroy();
});
