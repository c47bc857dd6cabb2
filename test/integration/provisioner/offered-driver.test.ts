import { once } from 'node:events';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { offerDriver } from '#src/browsers/process/webdriver.ts';
import type { Child } from '#src/browsers/process/child.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { until } from '#test/support/gateway.fixture.ts';

const PATH = `/${'a'.repeat(32)}`;
const FIRST_LINE = `GET ${PATH}/status HTTP/1.1\r\n`;
/** Answers each connection with its pid, and writes down how many are open. */
const PROGRAM = `
const { createServer } = require('node:net');
const { writeFileSync } = require('node:fs');
let open = 0;
const server = createServer((socket) => {
  writeFileSync('open', String(++open));
  socket.on('close', () => writeFileSync('open', String(--open)));
  socket.on('error', () => {});
  socket.write(String(process.pid));
});
server.listen(0, '127.0.0.1', () =>
  console.log('ChromeDriver was started successfully on port ' + server.address().port));
`;

/** Offers a driver: the program, after what the shell does first. */
async function offer(before: string, startMs: number) {
  const folder = await scratchDir();
  const children: Child[] = [];
  await writeFile(join(folder.path, 'driver.cjs'), PROGRAM);
  const program = join(folder.path, 'driver.sh');
  const node = `exec '${process.execPath}' driver.cjs`;
  await writeFile(program, `#!/bin/sh\n${before}\n${node}\n`);
  await chmod(program, 0o755);
  const place = { folder: folder.path, env: {}, user: undefined };
  const onStarted = (child: Child) => void children.push(child);
  const offered = await offerDriver(program, { path: PATH, place, onStarted, startMs });
  onTestFinished(async () => {
    offered.close();
    for (const { process: child } of children) child.kill('SIGKILL');
    await Promise.all(children.map(({ exited }) => exited));
    await folder[Symbol.asyncDispose]();
  });
  function enter(): Socket {
    const socket = connect(offered.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    socket.write(FIRST_LINE);
    return socket;
  }
  return { folder: folder.path, offered, children, enter };
}

test('a driver that starts too late is killed, and the next connection starts another', async () => {
  const hangsOnce = '[ -e hung ] || { touch hung; exec sleep 600; }';
  const { children, enter } = await offer(hangsOnce, 2_000);
  await once(enter(), 'close');
  expect(await children[0]?.exited).toMatchObject({ signal: 'SIGKILL' });
  const [pid] = (await once(enter(), 'data')) as [Buffer];
  expect(Number(pid)).toBe(children[1]?.process.pid);
});

test('a driver that ends because its port is taken is started again', async () => {
  const endsTwice = 'echo >>starts; [ "$(wc -l <starts)" -gt 2 ] || exit 1';
  const { children, enter } = await offer(endsTwice, 60_000);
  const [pid] = (await once(enter(), 'data')) as [Buffer];
  expect(Number(pid)).toBe(children[2]?.process.pid);
});

test('a driver that always ends is given up, until the next connection', async () => {
  const { children, enter } = await offer('exit 1', 60_000);
  await once(enter(), 'close');
  expect(children).toHaveLength(10);
  await once(enter(), 'close');
  expect(children).toHaveLength(20);
});

test('a driver that ends with its browser is not started again', async () => {
  const { offered, children, enter } = await offer('exec sleep 600', 60_000);
  const client = enter();
  await until(() => children.length === 1, 'the start');
  offered.close();
  children[0]?.process.kill('SIGKILL');
  await Promise.all([children[0]?.exited, client.closed || once(client, 'close')]);
  await new Promise(setImmediate);
  expect(children).toHaveLength(1);
});

test('a client that leaves while the driver starts leaves no connection to it', async () => {
  const { folder, enter } = await offer('while [ ! -e go ]; do sleep 0.02; done', 60_000);
  const leaving = enter();
  const staying = enter();
  await once(leaving, 'connect');
  leaving.destroy();
  await writeFile(join(folder, 'go'), '');
  await once(staying, 'data');
  await until(() => staying.bytesRead > 0, 'the answer');
  expect(await readFile(join(folder, 'open'), 'utf8')).toBe('1');
});
