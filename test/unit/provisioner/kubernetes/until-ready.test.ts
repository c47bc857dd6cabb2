import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { readVersion } from '#src/browsers/chromium/version.ts';
import { untilReady } from '#src/browsers/until-ready.ts';

const VERSION = { webSocketDebuggerUrl: 'ws://127.0.0.1/devtools/browser/1' };

test('a browser whose first connection gets no answer is asked again', async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    // A policy that is not in force yet is as silent.
    if (sockets.length === 1) return;
    const body = JSON.stringify(VERSION);
    socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, 'listening');
  const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  const launching = new AbortController().signal;
  const ask = () => readVersion(address, AbortSignal.any([launching, AbortSignal.timeout(100)]));
  expect(await untilReady(ask, launching)).toEqual(VERSION);
  expect(sockets.length).toBeGreaterThan(1);
});
