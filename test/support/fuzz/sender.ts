import { connect, type Socket } from 'node:net';
import type { Random } from './random.ts';

/** The head of an answer and its body, if the body has a length; null: closed without an answer. */
export type Answered = { status: number; head: string; body: string } | null;

/**
 * How bytes are sent: at once, in pieces with pauses, cut off in the middle, or with a client that
 * leaves before it has the answer.
 */
export type Way =
  | { way: 'whole' }
  | { way: 'pieces'; at: number[]; pauseMs: number }
  | { way: 'cut'; after: number }
  | { way: 'left'; afterMs: number };

/** An answer takes longer than this only where something hangs. */
const HANGS_MS = 90_000;
/** A server that has said nothing for this long may wait for the rest of a broken request. */
const QUIET_MS = 500;

/** Mostly as a client sends, now and then as one that is slow or goes. */
export function wayOf(random: Random, length: number): Way {
  const kind = random.int(20);
  if (kind === 0) return { way: 'cut', after: random.int(length) };
  if (kind === 1) return { way: 'left', afterMs: random.int(60) };
  if (kind > 3) return { way: 'whole' };
  const at = Array.from({ length: 1 + random.int(4) }, () => random.int(length));
  return { way: 'pieces', at: at.toSorted((a, b) => a - b), pauseMs: random.int(15) };
}

/**
 * Sends the bytes on a connection of their own, then `more` once a handshake is accepted, and
 * resolves with the first answer. If none comes at once, the sender half-closes: the server need
 * not wait for the rest of a broken request.
 * @param quietMs how long is waited for an answer before that
 * @throws Error if there is neither an answer nor an end
 */
export function send(
  port: number,
  bytes: Buffer,
  {
    way = { way: 'whole' },
    more,
    quietMs = QUIET_MS,
  }: { way?: Way; more?: Buffer; quietMs?: number },
): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true });
  const timer = setTimeout(() => {
    leave(socket);
    reject(new Error(`no answer to ${JSON.stringify(bytes.toString('latin1').slice(0, 5_000))}`));
  }, HANGS_MS);
  let quiet = setTimeout(() => socket.end(), quietMs);
  const isHead = bytes.subarray(0, 5).toString('latin1') === 'HEAD ';
  const answer = createAnswerReader(isHead);

  function finish(answered: Answered): void {
    clearTimeout(timer);
    clearTimeout(quiet);
    leave(socket);
    resolve(answered);
  }
  for (const end of ['error', 'end', 'close']) socket.on(end, () => finish(answer.read()));
  socket.on('data', (chunk) => {
    if (!answer.add(chunk)) return;
    const answered = answer.read();
    if (more === undefined || answered?.status !== 101) return finish(answered);
    // What follows a handshake is not answered in a known way; the end of sending is, by an end.
    socket.removeAllListeners('data').on('data', () => undefined);
    socket.end(more);
  });
  if (way.way === 'left') setTimeout(() => finish(null), way.afterMs);
  async function sendAll(): Promise<void> {
    await write(socket, bytes, way);
    if (way.way === 'cut') return finish(null);
    clearTimeout(quiet);
    if (!socket.destroyed) quiet = setTimeout(() => socket.end(), quietMs);
  }
  void sendAll();
  return promise;
}

async function write(socket: Socket, bytes: Buffer, way: Way): Promise<void> {
  if (way.way === 'cut') {
    await new Promise((resolve) => socket.write(bytes.subarray(0, way.after), resolve));
    return;
  }
  let from = 0;
  for (const to of way.way === 'pieces' ? way.at : []) {
    if (socket.destroyed) return;
    socket.write(bytes.subarray(from, to));
    from = to;
    await new Promise((resolve) => setTimeout(resolve, way.way === 'pieces' ? way.pauseMs : 0));
  }
  if (!socket.destroyed) socket.write(bytes.subarray(from));
}

function leave(socket: Socket): void {
  socket.removeAllListeners().on('error', () => undefined);
  socket.destroy();
}

/** @param isHead the answer has no body, although it tells a length; what follows is another one */
function createAnswerReader(isHead: boolean) {
  let received: Buffer = Buffer.alloc(0);
  let head: { status: number; text: string; length: number | null } | null = null;
  const body: Buffer[] = [];
  let got = 0;

  function readHead(): void {
    const end = received.indexOf('\r\n\r\n');
    const text = received.toString('latin1', 0, Math.max(0, end));
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
    if (end === -1 || Number.isNaN(status)) return;
    const rest = received.subarray(end + 4);
    received = Buffer.alloc(0);
    // "100 Continue" goes before the answer.
    if (status < 200 && status !== 101) {
      received = rest;
      return readHead();
    }
    const length = /^content-length: (\d+)$/im.exec(text)?.[1];
    head = { status, text, length: length === undefined ? null : Number(length) };
    addBody(rest);
  }
  function addBody(piece: Buffer): void {
    if (isHead) return;
    // Broken bytes may be two requests, and have two answers.
    const own = piece.subarray(0, (head?.length ?? Infinity) - got);
    got += own.length;
    body.push(own);
  }
  return {
    /** Whether the answer is whole. Streams have no length: their head is enough. */
    add(chunk: Buffer): boolean {
      if (head !== null) addBody(chunk);
      else {
        received = Buffer.concat([received, chunk]);
        readHead();
      }
      if (head === null) return false;
      const { status, length } = head;
      if (isHead || length === null || status === 101 || status === 204 || status === 304)
        return true;
      return got >= length;
    },
    read(): Answered {
      if (head === null) return null;
      return { status: head.status, head: head.text, body: Buffer.concat(body).toString('utf8') };
    },
  };
}
