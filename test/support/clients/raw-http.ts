import { once } from 'node:events';
import { connect } from 'node:net';

/** Sends requests one after the other on one connection, and returns the bytes of each answer. */
export type RawConnection = {
  /** Resolves with the raw answer: status line, headers, body. */
  ask(request: string): Promise<string>;
} & Disposable;

export async function openRaw(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  let received = '';
  let waiting: ((answer: string) => void) | null = null;
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
    const length = lengthOf(received);
    if (waiting === null || length === null || received.length < length) return;
    const answer = received.slice(0, length);
    received = received.slice(length);
    waiting(answer);
    waiting = null;
  });
  return {
    ask(request) {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      waiting = resolve;
      socket.once('close', () => reject(new Error(`closed after: ${received}`)));
      socket.write(request, 'latin1');
      return promise.finally(() => socket.removeAllListeners('close'));
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** The length of the whole answer, head and body; null while its head is incomplete. */
function lengthOf(received: string): number | null {
  const head = received.indexOf('\r\n\r\n');
  if (head === -1) return null;
  const length = /^content-length: (\d+)$/im.exec(received.slice(0, head))?.[1];
  return head + 4 + Number(length ?? 0);
}

/** A request as its bytes; a body goes as JSON. */
export function rawRequest(
  method: string,
  path: string,
  sent: { key?: string; body?: unknown; headers?: Record<string, string> } = {},
): string {
  const body = sent.body === undefined ? '' : JSON.stringify(sent.body);
  const headers = {
    host: 'localhost',
    ...(sent.key !== undefined && { authorization: `Bearer ${sent.key}` }),
    ...(sent.body !== undefined && {
      'content-type': 'application/json',
      'content-length': `${Buffer.byteLength(body)}`,
    }),
    ...sent.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}
