import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { sendOverHttp } from '#src/webhook-sender/send.ts';

/** Sends of webhooks over real sockets. */

const rules = { allowsPrivate: true, resolve: async () => [] };

/** Sends to a server that treats its connections so. */
async function sendTo(treat: (socket: Socket) => void, timeoutMs: number) {
  const server = createServer((socket) => treat(socket.on('error', () => undefined)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const { signal } = new AbortController();
  const options = { rules, timeoutMs, now: Date.now, signal };
  const result = await sendOverHttp({ url, body: '{}', headers: {} }, options);
  // Every connection has been closed, or this would not end.
  await new Promise((resolve) => void server.close(resolve));
  return result;
}

test('an endpoint that switches protocols has failed, and holds up nothing', async () => {
  const result = await sendTo((socket) => {
    socket.once('data', () =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    );
  }, 120_000);
  expect(result).toMatchObject({ outcome: 'failed', reason: 'the connection was cut' });
});

test('an endpoint that does not answer has failed once the time of an attempt is over', async () => {
  const result = await sendTo((socket) => void socket.resume(), 100);
  expect(result).toMatchObject({ outcome: 'failed', status: null });
  expect(result.reason).toBe('no answer within 0.1 s');
});
