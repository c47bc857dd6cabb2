import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A proxy before a nats-server that holds deliveries back, as a slow subscription would. */
export type HoldingNatsProxy = AsyncDisposable & {
  readonly url: string;
  /** The messages held back so far. */
  held(): number;
  /** Delivers what was held back, and holds nothing from now on. */
  release(): void;
};

/**
 * Holds back messages whose subject has the text `from`, and all that follow, of each subscription
 * that has received one whose subject has the text `heard`; all else passes.
 */
export async function startHoldingNatsProxy(
  url: string,
  { heard, from }: { heard: string; from: string },
): Promise<HoldingNatsProxy> {
  const { hostname: host, port } = new URL(url);
  const sockets = new Set<Socket>();
  let held: (() => void)[] = [];
  let isHolding = true;

  const server = createServer((near) => {
    const far = connect({ port: Number(port), host });
    for (const socket of [near, far]) {
      sockets.add(socket);
      // An error is followed by a close, which ends the other side.
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (bytes) => far.write(bytes));
    const known = new Set<string>();
    const slow = new Set<string>();
    let unread: Buffer = Buffer.alloc(0);
    far.on('data', (bytes) => {
      unread = Buffer.concat([unread, bytes]);
      for (let part = firstPart(unread); part !== null; part = firstPart(unread)) {
        const { message, length } = part;
        const sent = Buffer.from(unread.subarray(0, length));
        unread = unread.subarray(length);
        if (message !== null && message.subject.includes(heard)) known.add(message.subscription);
        if (message !== null && message.subject.includes(from) && known.has(message.subscription))
          slow.add(message.subscription);
        if (isHolding && message !== null && slow.has(message.subscription))
          held.push(() => near.write(sent));
        else near.write(sent);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    held: () => held.length,
    release() {
      isHolding = false;
      for (const deliver of held) deliver();
      held = [];
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** The first line that the server sent, with its payload; null while it has not arrived whole. */
function firstPart(bytes: Buffer) {
  const end = bytes.indexOf('\r\n');
  if (end === -1) return null;
  const [verb = '', subject = '', subscription = '', ...rest] = bytes
    .toString('latin1', 0, end)
    .split(' ');
  if (verb !== 'MSG' && verb !== 'HMSG') return { message: null, length: end + 2 };
  const length = end + 2 + Number(rest.at(-1)) + 2;
  return bytes.length < length ? null : { message: { subject, subscription }, length };
}
