import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP proxy on a loopback port whose connections can be broken at a chosen moment. */
export type FlakyTcpProxy = AsyncDisposable & {
  readonly port: number;
  /**
   * Breaks all connections when the server sends this text, whose end is lost; then, once for each,
   * when it sends the texts that follow.
   */
  breakOn(...texts: string[]): void;
  /** Breaks all connections when the server sends this text, and accepts none from then on. */
  endOn(text: string): void;
  /** How often connections were broken. */
  breaks(): number;
  /** Passes no byte on, either way, and closes nothing, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Breaks all connections; the next ones lead to the server at this port. */
  leadTo(port: number): void;
  /** Bytes that clients have sent. */
  bytesSent(): number;
};

const LONGEST_TEXT = 100;

export async function startFlakyTcpProxy(targetPort: number): Promise<FlakyTcpProxy> {
  const sockets = new Set<Socket>();
  let breaking: string[] = [];
  let breaks = 0;
  let isFrozen = false;
  let isLast = false;
  let isOver = false;
  let target = targetPort;
  let sent = 0;

  function cut() {
    for (const socket of sockets) socket.destroy();
  }

  const server = createServer((near) => {
    if (isOver) {
      near.destroy();
      return;
    }
    const far = connect({ port: target, host: '127.0.0.1' });
    for (const socket of [near, far]) {
      sockets.add(socket);
      if (isFrozen) socket.pause();
      // An error is followed by a close, which ends the other side.
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (bytes: Buffer) => {
      sent += bytes.length;
      far.write(bytes);
    });
    // A text may arrive in two parts.
    let before = Buffer.alloc(0);
    far.on('data', (bytes: Buffer) => {
      const [text] = breaking;
      const seen = Buffer.concat([before, bytes]);
      if (text === undefined || !seen.includes(text)) {
        before = seen.subarray(-LONGEST_TEXT);
        near.write(bytes);
        return;
      }
      breaking.shift();
      breaks += 1;
      isOver = isLast;
      cut();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    breakOn(...texts) {
      breaking = texts;
    },
    endOn(text) {
      breaking = [text];
      isLast = true;
    },
    breaks: () => breaks,
    freeze() {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw() {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    leadTo(port) {
      target = port;
      cut();
    },
    bytesSent: () => sent,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      cut();
      await closed;
    },
  };
}
