import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { lingerAtClose } from '#src/kernel/http/linger.ts';
import { eventually } from '#test/support/service/service.ts';

/** Answers that come before the body of their request, on a connection that closes with them. */

const PIECE = Buffer.alloc(64 * 1024, 1);

/** A server that refuses each body at once, and a client of it that has seen nothing yet. */
async function refusing(lingerMs: number | null) {
  const { promise: refused, resolve } = Promise.withResolvers<IncomingMessage>();
  const server = createServer((request, response) => {
    if (lingerMs !== null) lingerAtClose(request, lingerMs);
    response.writeHead(413, { connection: 'close' }).end('too large');
    response.once('finish', () => resolve(request));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const errors: string[] = [];
  let received = '';
  socket.on('error', (error) => errors.push(error.message));
  socket.on('data', (data: Buffer) => (received += data.toString()));
  const head = 'PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
  socket.write(head);
  send(socket);
  await refused;
  return {
    socket,
    errors,
    received: () => received,
    async [Symbol.asyncDispose]() {
      socket.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function send(socket: Socket): void {
  socket.write(`${PIECE.length.toString(16)}\r\n`);
  socket.write(PIECE);
  socket.write('\r\n');
}

/** Sends the rest of the body, each piece once the one before has left, and its end. */
async function sendRest(socket: Socket): Promise<void> {
  for (let piece = 0; piece < 32 && !socket.destroyed; piece += 1) {
    send(socket);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (!socket.destroyed) socket.end('0\r\n\r\n');
}

test('a client that is sending reads the answer, and its sending meets no reset', async () => {
  await using client = await refusing(60_000);
  const closed = once(client.socket, 'close');
  await sendRest(client.socket);
  await closed;
  expect(client.errors).toEqual([]);
  expect(client.received()).toMatch(/^HTTP\/1\.1 413 .*too large/s);
});

test('one that goes on and on is cut off', async () => {
  await using client = await refusing(1_000);
  // A reset takes what has not been read with it.
  await eventually(() => client.received().startsWith('HTTP/1.1 413 '), 'it has the answer');
  // Its sending fails in one of several ways.
  await eventually(() => {
    send(client.socket);
    return client.socket.destroyed;
  }, 'it is cut off');
});
