import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP proxy on a loopback port whose connections can be broken at a chosen moment. */
export type FlakyTcpProxy = AsyncDisposable & {
  readonly port: number;
  /** Breaks all connections at the next answer, which is lost although its request arrived. */
  breakOnAnswer(): void;
  /** Breaks all connections when the server sends bytes with this text, which are lost. */
  breakOn(text: string): void;
  /** How often connections were broken. */
  breaks(): number;
};

export async function startFlakyTcpProxy(targetPort: number): Promise<FlakyTcpProxy> {
  const sockets = new Set<Socket>();
  let breaking: string | null = null;
  let breaks = 0;

  function cut() {
    breaking = null;
    for (const socket of sockets) socket.destroy();
  }

  const server = createServer((near) => {
    const far = connect({ port: targetPort, host: '127.0.0.1' });
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
    far.on('data', (bytes) => {
      if (breaking === null || !bytes.includes(breaking)) {
        near.write(bytes);
        return;
      }
      breaks += 1;
      cut();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    breakOnAnswer() {
      breaking = '';
    },
    breakOn(text) {
      breaking = text;
    },
    breaks: () => breaks,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      cut();
      await closed;
    },
  };
}
