import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, Socket, type AddressInfo } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, test } from 'vitest';
import { boundConnections, type ConnectionBounds } from '#src/roles/api/http/connections.ts';
import { makeCertificate } from '#test/support/servers/certificates.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';

/**
 * Connections that have sent no valid credential are bounded by address and in all, the others by
 * the owners of their credentials.
 */

const usual = { max: 10_000, trustedProxies: [] };

/**
 * A server whose requests count as authenticated, by the owner that they name, if they ask for
 * /known; those to /known/stream stay open.
 */
async function serve(
  bounds: Partial<ConnectionBounds>,
  create: (listener: RequestListener) => Server = createServer,
) {
  const server = create((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://a');
    const owner = searchParams.get('owner') ?? 'acme';
    if (pathname.startsWith('/known')) connections.prove(request.socket, owner);
    if (pathname === '/known/stream') response.write('event');
    else response.end();
  });
  server.keepAliveTimeout = 0; // on a busy machine the usual 5 s pass within a test
  const connections = boundConnections(server, { ...usual, ...bounds });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const opened: Socket[] = [];
  /** One connection after the other, so that their order is known. */
  async function open(dial: (port: number) => Socket = (to) => connect(to, '127.0.0.1')) {
    const before = opened.length;
    const accepted = once(server, 'connection');
    const socket = dial(port);
    socket.on('error', () => undefined);
    opened[before] = socket;
    await accepted;
    return socket;
  }
  return {
    open,
    opened,
    closed: () => opened.flatMap((socket, at) => (socket.closed ? [at] : [])),
    async [Symbol.asyncDispose]() {
      for (const socket of opened) socket.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}

async function ask(socket: Socket, path: string): Promise<void> {
  socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
  const closed = once(socket, 'close').then(() => {
    throw new Error('closed without an answer');
  });
  await Promise.race([once(socket, 'data'), closed]);
}

it('closes the oldest of an address that holds too many', async () => {
  await using server = await serve({ unprovenPerAddressMax: 3 });
  for (let connection = 0; connection < 5; connection += 1) {
    const socket = await server.open();
    socket.resume();
  }
  await eventually(() => server.closed().length === 2, 'two are closed');
  expect(server.closed()).toEqual([0, 1]);
});

it('counts no connection among strangers that sent a valid credential or was closed', async () => {
  await using server = await serve({ unprovenPerAddressMax: 2 });
  for (let known = 0; known < 3; known += 1) await ask(await server.open(), '/known');
  const left = await server.open();
  const gone = once(left, 'close');
  left.end('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  left.resume();
  await gone;
  await ask(await server.open(), '/unknown');
  await ask(await server.open(), '/unknown');
  expect(server.closed()).toEqual([3]);
  const fresh = await server.open();
  fresh.resume();
  await eventually(() => server.closed().length === 2, 'the oldest stranger is closed');
  expect(server.closed()).toEqual([3, 4]);
});

describe('where all with a credential are too many', () => {
  /** Four places beside those of strangers. */
  const four = { max: 6, unprovenMax: 2 };

  it('closes the longest idle connection of the owner that has the most idle ones', async () => {
    await using server = await serve(four);
    const first = await server.open();
    await ask(first, '/known?owner=greedy');
    for (let more = 0; more < 2; more += 1) await ask(await server.open(), '/known?owner=greedy');
    await ask(first, '/known?owner=greedy'); // the second is the longest idle now
    const modest = await server.open();
    await ask(modest, '/known?owner=modest');
    expect(server.closed()).toEqual([]);

    await ask(await server.open(), '/known?owner=greedy');
    await eventually(() => server.closed().length === 1, 'one of the greedy is closed');
    await ask(await server.open(), '/known?owner=third');
    await eventually(() => server.closed().length === 2, 'one more is closed');
    expect(server.closed()).toEqual([1, 2]);
    for (let more = 0; more < 10; more += 1) await ask(await server.open(), '/known?owner=greedy');
    await ask(modest, '/known?owner=modest');
    // The places of strangers are left to them.
    await ask(await server.open(), '/unknown');
    await ask(await server.open(), '/unknown');
    await eventually(() => server.opened.length - server.closed().length === 6, 'six are left');
  });

  it('closes none with an open request before that has ended', async () => {
    await using server = await serve(four);
    for (let stream = 0; stream < 5; stream += 1)
      await ask(await server.open(), '/known/stream?owner=greedy');
    // It is answered, and closed as soon as that is done.
    await ask(await server.open(), '/known?owner=modest');
    await eventually(() => server.closed().length === 1, 'one is closed');
    expect(server.closed()).toEqual([5]);
  });
});

it('closes the oldest stranger of all where all are too many, but none of a trusted proxy', async () => {
  await using bounded = await serve({ unprovenMax: 2 });
  for (let connection = 0; connection < 3; connection += 1) (await bounded.open()).resume();
  await eventually(() => bounded.closed().length === 1, 'one is closed');
  expect(bounded.closed()).toEqual([0]);

  const trustedProxies = ['10.0.0.0/8', '127.0.0.0/8', 'fd00::/8'];
  await using trusting = await serve({ unprovenMax: 2, unprovenPerAddressMax: 1, trustedProxies });
  for (let connection = 0; connection < 5; connection += 1)
    await ask(await trusting.open(), '/unknown');
  expect(trusting.closed()).toEqual([]);
});

it('counts the 64 bits of an IPv6 network as one address', () => {
  const server = createServer();
  boundConnections(server, { ...usual, unprovenPerAddressMax: 2 });
  const dial = (remoteAddress: string) => {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress });
    server.emit('connection', socket);
    return socket;
  };
  const [first, second, other, third] = [
    '2001:db8::1',
    '2001:db8::2',
    '2001:db8:0:1::1',
    '2001:db8:0:0:a:b:c:d',
  ].map(dial);
  expect([first, second, other, third].map((socket) => socket?.destroyed)).toEqual([
    true,
    false,
    false,
    false,
  ]);
  server.closeAllConnections();
});

it('holds behind TLS, too, where a request has another socket than the server', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'connections-'));
  const files = await makeCertificate(folder, 'localhost');
  const certificate = { cert: await readFile(files.cert), key: await readFile(files.key) };
  await rm(folder, { recursive: true });
  await using server = await serve({ unprovenPerAddressMax: 2 }, (listener) =>
    createTlsServer(certificate, listener),
  );
  const dial = (port: number) => connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await ask(await server.open(dial), '/known');
  for (let stranger = 0; stranger < 3; stranger += 1)
    await ask(await server.open(dial), '/unknown');
  await eventually(() => server.closed().length === 1, 'one stranger is closed');
  expect(server.closed()).toEqual([1]);
});

test('health and readiness are not told to a page whose name leads to this machine', async () => {
  await using app = await startApp();
  const address = new URL(await app.listen());
  for (const path of ['/api/health', '/api/ready', '/metrics'])
    for (const [host, status] of [
      [address.host, 200],
      ['localhost:1', 200],
      ['browsers.example', 200],
      ['evil.example', 404],
    ] as const) {
      const socket = connect(Number(address.port), address.hostname);
      socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      const [head] = (await once(socket, 'data')) as [Buffer];
      expect([path, host, head.toString().slice(9, 12)]).toEqual([path, host, String(status)]);
      socket.destroy();
    }
});
