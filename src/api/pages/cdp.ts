import { once } from 'node:events';
import { WebSocket } from 'ws';
import { parseForeignJson } from '#src/foreign/foreign-json.ts';
import { EVENT_KEPT, readEvent, readObject, textOf, type PageEvent } from './page-events.ts';
import { connectShortened } from './short-events.ts';

/** A client's connection to a browser, through the gateway. */
export type CdpConnection = {
  /** @throws CdpRefusal where the browser refuses, ConnectionLost once the connection has ended */
  send(method: string, params?: object, sessionId?: string): Promise<Record<string, unknown>>;
  /** Calls the listener for each event of a page, until another one is set. */
  onEvent(listener: (event: PageEvent) => void): void;
  /** Rejects once the connection has ended, with the reason. */
  readonly lost: Promise<never>;
} & Disposable;

/** The browser refuses a command. */
export class CdpRefusal extends Error {
  override readonly name = 'CdpRefusal';
}

/** The connection could not be made, or has ended. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  /** A message was longer than the connection takes. */
  readonly isTooLong: boolean;
  constructor(message: string, isTooLong = false) {
    super(message);
    this.isTooLong = isTooLong;
  }
}

/** Commands without an answer: a browser could cause them without end, by what it asks. */
const PENDING_MAX = 4_096;
const REPLY = Buffer.from('{"id":');
const TOO_LONG = 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';

/**
 * Connects to a browser's CDP by its ticket. The browser may send anything: a page may have taken
 * it over. Answers are parsed; of events those that are used, known by their first bytes; what
 * cannot be read ends the connection.
 * @param options `messageBytesMax`: a longer message ends the connection
 * @throws ConnectionLost, or the reason of the aborted signal
 */
export async function connectCdp(
  url: string,
  { signal, messageBytesMax }: { signal: AbortSignal; messageBytesMax: number },
): Promise<CdpConnection> {
  signal.throwIfAborted();
  const socket = socketTo(url, messageBytesMax);
  const pending = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  let onEvent: ((event: PageEvent) => void) | null = null;
  const lost = Promise.withResolvers<never>();
  lost.promise.catch(() => undefined);
  let ended: Error | null = null;
  function end(error: Error): void {
    ended ??= error;
    lost.reject(ended);
    for (const { reject } of pending.values()) reject(ended);
    pending.clear();
    socket.terminate();
  }
  const abort = (): void => end(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  socket.on('error', (error: Error & { code?: string }) =>
    end(new ConnectionLost(error.message, error.code === TOO_LONG)),
  );
  socket.on('close', (code) => {
    signal.removeEventListener('abort', abort);
    end(new ConnectionLost(`the browser's connection was closed: ${code}`));
  });
  socket.on('message', (data: Buffer, isBinary) => {
    try {
      if (isBinary) throw new SyntaxError('a message is not text');
      receive(data);
    } catch (error) {
      end(new ConnectionLost(`the browser sent what is no message: ${String(error)}`));
    }
  });

  function receive(data: Buffer): void {
    if (!data.subarray(0, REPLY.length).equals(REPLY)) {
      const event = readEvent(data);
      if (event !== null) onEvent?.(event);
      return;
    }
    const { id, answer } = readReply(data, messageBytesMax);
    const waiter = pending.get(id);
    // Not before all of it is read: what cannot be read rejects all that wait.
    pending.delete(id);
    if (answer instanceof CdpRefusal) waiter?.reject(answer);
    else waiter?.resolve(answer);
  }

  try {
    await once(socket, 'open', { signal });
  } catch (error) {
    // The signal's own reason rather than an AbortError.
    end(error as Error);
    throw ended ?? error;
  }
  let lastId = 0;
  return {
    async send(method, params = {}, sessionId) {
      if (pending.size >= PENDING_MAX)
        end(new ConnectionLost(`the browser leaves ${PENDING_MAX} commands unanswered`));
      if (ended !== null) throw ended;
      lastId += 1;
      const answer = Promise.withResolvers<Record<string, unknown>>();
      pending.set(lastId, answer);
      socket.send(JSON.stringify({ id: lastId, method, params, sessionId }));
      return answer.promise;
    },
    onEvent: (listener) => void (onEvent = listener),
    lost: lost.promise,
    [Symbol.dispose]: () => end(new ConnectionLost('the connection is not needed any more')),
  };
}

/** @throws SyntaxError or RangeError if it is none */
function readReply(data: Buffer, bytesMax: number) {
  const { id, result, error } = readObject(parseForeignJson(data, { bytesMax }));
  if (error === undefined) return { id: Number(id), answer: readObject(result) };
  return { id: Number(id), answer: new CdpRefusal(textOf(readObject(error)['message'])) };
}

function socketTo(url: string, maxPayload: number): WebSocket {
  return new WebSocket(url, {
    perMessageDeflate: false,
    maxPayload,
    createConnection: connectShortened(EVENT_KEPT, url.startsWith('wss:')),
    // An event may be cut within a character.
    skipUTF8Validation: true,
  });
}
