import { once } from 'node:events';
import { WebSocket, type ClientOptions } from 'ws';
import { parseForeignJson, readObject, textOf } from '#src/kernel/foreign/foreign-json.ts';
import { connectToBrowser, type BrowserAddress } from './browser-link.ts';

/** A connection to a browser's CDP; what it has begun ends with it. */
export type Cdp<Event = CdpEvent> = {
  /**
   * @throws CdpRefusal where the browser refuses, ConnectionLost or the signal's reason once the
   * connection has ended
   */
  send<Result = Record<string, unknown>>(
    method: string,
    params?: object,
    sessionId?: string,
  ): Promise<Result>;
  /** Attaches to a target, as a session of this connection. @returns its id @throws as `send` */
  attach(targetId: string): Promise<string>;
  /** Calls the listener for each event that is read, until another one is set. */
  onEvent(listener: (event: Event) => void): void;
  isOpen(): boolean;
  /** Rejects when the connection has ended. */
  closed: Promise<never>;
} & Disposable;

export type CdpEvent = { method: string; params: Record<string, unknown>; sessionId?: string };
/** What a browser has sent: the answer to a command, or an event. */
export type CdpMessage<Event> = CdpAnswer | { event: Event };
export type CdpAnswer = { id: number; answer: Record<string, unknown> | Error };

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
const TOO_LONG = 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';

type CdpOptions<Event> = {
  /** The connection ends when it aborts. */
  signal: AbortSignal;
  /** A longer message ends the connection. */
  bytesMax: number;
  /**
   * What is read of a message; null: nothing. What it throws ends the connection: a browser that a
   * page has taken over may send anything.
   */
  read: (data: Buffer, bytesMax: number) => CdpMessage<Event> | null;
  /** How the socket is opened and read, where that is another way. */
  socket?: Pick<ClientOptions, 'createConnection' | 'skipUTF8Validation'>;
};

/**
 * Connects to a browser's CDP: through its link, or at the gateway, by the address with a ticket.
 * @throws ConnectionLost, or the reason of the aborted signal
 */
export async function connectCdp<Event>(
  at: string | (BrowserAddress & { path: string }),
  { signal, bytesMax, read, socket: opened }: CdpOptions<Event>,
): Promise<Cdp<Event>> {
  signal.throwIfAborted();
  const socket = openSocket(at, { maxPayload: bytesMax, ...opened });
  const pending = new PendingCommands();
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => undefined);
  let onEvent: ((event: Event) => void) | null = null;
  let ended: Error | null = null;
  function end(error: Error): void {
    ended ??= error;
    closed.reject(ended);
    pending.rejectAll(ended);
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
      const message = read(data, bytesMax);
      if (message === null) return;
      if ('event' in message) onEvent?.(message.event);
      else pending.settle(message);
    } catch (error) {
      end(new ConnectionLost(`the browser sent what is no message: ${String(error)}`));
    }
  });
  try {
    await once(socket, 'open', { signal });
  } catch (error) {
    // The signal's own reason rather than an AbortError.
    end(error as Error);
    throw ended ?? error;
  }

  async function send<Result>(method: string, params: object = {}, sessionId?: string) {
    if (pending.size >= PENDING_MAX)
      end(new ConnectionLost(`the browser leaves ${PENDING_MAX} commands unanswered`));
    if (ended !== null) throw ended;
    const { id, answer } = pending.add();
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    return (await answer) as Result;
  }
  return {
    send,
    async attach(targetId) {
      const attached = await send<Record<string, unknown>>('Target.attachToTarget', {
        targetId,
        flatten: true,
      });
      return textOf(attached['sessionId']);
    },
    onEvent: (listener) => void (onEvent = listener),
    isOpen: () => ended === null,
    closed: closed.promise,
    [Symbol.dispose]: () => end(new ConnectionLost('the connection is not needed any more')),
  };
}

/** The commands that have no answer yet. */
class PendingCommands {
  readonly #waiters = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  #lastId = 0;

  get size(): number {
    return this.#waiters.size;
  }
  add(): { id: number; answer: Promise<Record<string, unknown>> } {
    this.#lastId += 1;
    const waiter = Promise.withResolvers<Record<string, unknown>>();
    this.#waiters.set(this.#lastId, waiter);
    return { id: this.#lastId, answer: waiter.promise };
  }
  /** Ignores an answer to no command of these. */
  settle({ id, answer }: CdpAnswer): void {
    const waiter = this.#waiters.get(id);
    this.#waiters.delete(id);
    if (answer instanceof Error) waiter?.reject(answer);
    else waiter?.resolve(answer);
  }
  rejectAll(error: Error): void {
    for (const { reject } of this.#waiters.values()) reject(error);
    this.#waiters.clear();
  }
}

function openSocket(
  at: string | (BrowserAddress & { path: string }),
  given: ClientOptions,
): WebSocket {
  const options = { perMessageDeflate: false, ...given };
  if (typeof at === 'string') return new WebSocket(at, options);
  const createConnection = () => connectToBrowser(at);
  return new WebSocket(`ws://${at.host}:${at.port}${at.path}`, { ...options, createConnection });
}

/**
 * Reads any message.
 * @throws SyntaxError where it is none of CDP, RangeError where it has too many bytes or values
 */
export function readMessage(data: Buffer, bytesMax: number): CdpMessage<CdpEvent> {
  const message = readObject(parseForeignJson(data, { bytesMax }));
  if (!('method' in message)) return readAnswer(message);
  readObject(message['params']);
  return { event: message as CdpEvent };
}

/** @throws SyntaxError where it is none */
export function readAnswer({ id, result, error }: Record<string, unknown>): CdpAnswer {
  const answer =
    error === undefined ? readObject(result) : new CdpRefusal(textOf(readObject(error)['message']));
  return { id: Number(id), answer };
}
