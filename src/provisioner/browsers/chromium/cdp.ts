import { once } from 'node:events';
import { WebSocket } from 'ws';
import { connectToBrowser } from '#src/browser-link/browser-link.ts';
import { parseForeignJson } from '#src/foreign/foreign-json.ts';
import type { RunningBrowser } from '../browsers.ts';

/** A connection to a browser's CDP; what it has begun ends with it. */
export type Cdp = {
  /** @throws Error where the browser refuses, or has not answered when the connection ends */
  send<Result>(method: string, params?: object, sessionId?: string): Promise<Result>;
  /** Calls the listener for each event of an attached target, until another one is set. */
  onEvent(listener: (event: CdpEvent) => void): void;
  isOpen(): boolean;
  /** Rejects when the connection has ended. */
  closed: Promise<never>;
} & Disposable;

export type CdpEvent = { method: string; params: Record<string, unknown>; sessionId?: string };

type Answer = { id?: number; result?: unknown; error?: { message: string } };

/** The largest is a picture of a page of 3840 x 7680 pixels, in base64. */
const MESSAGE_BYTES_MAX = 32 * 1024 ** 2;

/** The end of a message of a target, behind all that a page can choose: its CDP session. */
const LAST_SESSION = /"sessionId":"(\w{1,64})"\}$/;
const END_BYTES = 128;
const ANSWER = /^\{"id":(\d{1,9}),/;

/** The event in place of one that was too large to be read. */
export const TOO_LARGE = 'Connection.eventTooLarge';

/**
 * Connects to a browser; the connection ends when the signal aborts.
 * @param options `readBytesMax`: a larger message is not read, and its target has the event
 * `TOO_LARGE` instead
 * @throws Error if it does not answer before that
 */
export async function openCdp(
  address: RunningBrowser['cdp'],
  signal: AbortSignal,
  { readBytesMax = MESSAGE_BYTES_MAX } = {},
): Promise<Cdp> {
  signal.throwIfAborted();
  const { host, port, path } = address;
  const socket = new WebSocket(`ws://${host}:${port}${path}`, {
    perMessageDeflate: false,
    maxPayload: MESSAGE_BYTES_MAX,
    createConnection: () => connectToBrowser(address),
  });
  let onEvent: ((event: CdpEvent) => void) | null = null;
  const pending = new Map<number, PromiseWithResolvers<unknown>>();
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => undefined);
  function end(error: Error): void {
    closed.reject(error);
    for (const { reject } of pending.values()) reject(error);
    pending.clear();
    socket.terminate();
  }
  const abort = (): void => end(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  socket.on('error', end);
  socket.on('close', () => {
    signal.removeEventListener('abort', abort);
    end(new Error('Chromium closed the CDP socket'));
  });
  function receive(message: Answer | CdpEvent): void {
    if ('method' in message) return onEvent?.(message);
    const { id = 0, result, error } = message;
    const waiter = pending.get(id);
    if (error === undefined) waiter?.resolve(result);
    else waiter?.reject(new Error(error.message));
    pending.delete(id);
  }
  socket.on('message', (data: Buffer) => {
    try {
      receive(data.length > readBytesMax ? tooLarge(data) : read(data));
    } catch (error) {
      // A browser that a page has taken over may send anything.
      end(error as Error);
    }
  });
  await once(socket, 'open', { signal });
  const isOpen = () => socket.readyState === WebSocket.OPEN;

  let lastId = 0;
  return {
    async send<Result>(method: string, params: object = {}, sessionId?: string): Promise<Result> {
      if (!isOpen()) throw new Error('the CDP socket has closed');
      lastId += 1;
      const answer = Promise.withResolvers<unknown>();
      pending.set(lastId, answer);
      socket.send(JSON.stringify({ id: lastId, method, params, sessionId }));
      return (await answer.promise) as Result;
    },
    isOpen,
    closed: closed.promise,
    onEvent: (listener) => void (onEvent = listener),
    [Symbol.dispose]: () => socket.terminate(),
  };
}

/** A message of too many values fails the command that it answers, or is an event as too large. */
function read(data: Buffer): Answer | CdpEvent {
  try {
    return parseForeignJson(data, { bytesMax: MESSAGE_BYTES_MAX }) as Answer | CdpEvent;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const [, id] = ANSWER.exec(data.subarray(0, END_BYTES).toString('latin1')) ?? [];
    return id === undefined ? tooLarge(data) : { id: Number(id), error };
  }
}

function tooLarge(data: Buffer): CdpEvent {
  const [, sessionId] = LAST_SESSION.exec(data.subarray(-END_BYTES).toString('latin1')) ?? [];
  const event = { method: TOO_LARGE, params: { bytes: data.length } };
  return sessionId === undefined ? event : { ...event, sessionId };
}
