import { connect, type Socket } from 'node:net';

/** The head of an answer and its body, if the body has a length; null: closed without an answer. */
export type Answered = { status: number; head: string; body: string } | null;

/** An answer takes longer than this only where something hangs. */
const HANGS_MS = 60_000;
/** A server that has said nothing for this long may wait for the rest of a broken request. */
const QUIET_MS = 500;

/**
 * Sends the bytes on a connection of their own, then `more` once a handshake is accepted, and
 * resolves with the first answer. If none comes at once, the sender half-closes: the server need
 * not wait for the rest of a broken request.
 * @throws Error if there is neither an answer nor an end
 */
export function send(port: number, bytes: Buffer, more?: Buffer): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true });
  const timer = setTimeout(() => {
    socket.destroy();
    reject(new Error(`no answer to ${JSON.stringify(bytes.toString('latin1'))}`));
  }, HANGS_MS);
  const quiet = setTimeout(() => socket.end(), QUIET_MS);
  const isHead = bytes.subarray(0, 5).toString('latin1') === 'HEAD ';
  let received = Buffer.alloc(0);

  function finish(answer: Answered): void {
    clearTimeout(timer);
    clearTimeout(quiet);
    leave(socket);
    resolve(answer);
  }
  for (const end of ['error', 'end', 'close'])
    socket.on(end, () => finish(answerIn(received, isHead)));
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    const answer = answerIn(received, isHead);
    if (answer === null || !(isHead || isWhole(received, answer))) return;
    if (more === undefined || answer.status !== 101) return finish(answer);
    // What follows a handshake is not answered in a known way; the end of sending is.
    socket.removeAllListeners('data').on('data', () => undefined);
    socket.end(more);
    setTimeout(() => finish(answer), 5);
  });
  socket.write(bytes);
  return promise;
}

function leave(socket: Socket): void {
  socket.removeAllListeners().on('error', () => undefined);
  socket.destroy();
}

/** @param isHead the answer has no body, although it tells a length; what follows is another one */
function answerIn(received: Buffer, isHead: boolean): Answered {
  const text = received.toString('latin1');
  const end = text.indexOf('\r\n\r\n');
  const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1];
  if (end === -1 || status === undefined) return null;
  const head = text.slice(0, end).toLowerCase();
  const length = lengthIn(head) ?? received.length;
  // Broken bytes may be two requests, and have two answers.
  const rest = isHead ? Buffer.alloc(0) : received.subarray(end + 4, end + 4 + length);
  return { status: Number(status), head, body: rest.toString('utf8') };
}

function lengthIn(head: string): number | null {
  const length = /^content-length: (\d+)$/m.exec(head)?.[1];
  return length === undefined ? null : Number(length);
}

/** Streams have no length: their head is enough. */
function isWhole(received: Buffer, { head, status }: NonNullable<Answered>): boolean {
  const length = lengthIn(head);
  if (length === null || status === 101 || status === 204 || status === 304) return true;
  const end = received.indexOf('\r\n\r\n') + 4;
  return received.length - end >= length;
}
