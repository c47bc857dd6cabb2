import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createOwnAddresses } from '#src/kernel/host/own-addresses.ts';
import { sendOverHttp } from '#src/features/webhooks/sender/send.ts';

/** Sends of webhooks over real sockets. */

const own = createOwnAddresses(['bss.example.org', '203.0.113.8'], async () => ['203.0.113.7']);
const rules = { allowsPrivate: true, resolve: async () => [] as string[], own };

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

test.each([
  ['https://bss.example.org/', 'the address is one of this service itself'],
  ['https://203.0.113.8/', 'the address is one of this service itself'],
  ['https://alias.example/', 'the address is one of this service itself'],
  ['https://inside.example/', 'the address leads inside'],
  ['https://10.0.0.1/', 'the address leads inside'],
  ['https://nowhere.example/', 'the name has no address'],
])('nothing is sent to %s: %s', async (url, reason) => {
  const addresses: Record<string, string[]> = {
    'alias.example': ['203.0.113.7'],
    'inside.example': ['10.0.0.1'],
  };
  const resolve = async (name: string) => addresses[name] ?? [];
  const closed = { allowsPrivate: false, resolve, own };
  const { signal } = new AbortController();
  const options = { rules: closed, timeoutMs: 120_000, now: Date.now, signal };
  const result = await sendOverHttp({ url, body: '{}', headers: {} }, options);
  expect(result).toMatchObject({ outcome: 'failed', status: null, reason });
});
