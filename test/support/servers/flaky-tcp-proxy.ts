import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A loopback port that leads to another, over a wire that can break. */
export type FrailWire = AsyncDisposable & {
  readonly port: number;
  /** Breaks the connection when the next answer comes: it is lost, though its request was heard. */
  breakOnAnswer(): void;
};

export async function startWire(targetPort: number): Promise<FrailWire> {
  const sockets = new Set<Socket>();
  let isBreaking = false;

  function cut() {
    isBreaking = false;
    for (const socket of sockets) socket.destroy();
  }

  const server = createServer((near) => {
    const far = connect({ port: targetPort, host: '127.0.0.1' });
    for (const socket of [near, far]) {
      sockets.add(socket);
      // The other side hears of it by its own close.
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (bytes) => far.write(bytes));
    far.on('data', (bytes) => {
      if (isBreaking) cut();
      else near.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    breakOnAnswer() {
      isBreaking = true;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      cut();
      await closed;
    },
  };
}
