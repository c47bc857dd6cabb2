import { WebSocket } from 'ws';
import { connectToBrowser, type BrowserAddress } from '#src/browsers/link/browser-link.ts';

/**
 * Connects and waits for the reply to one command: from then on the browser can be driven.
 * `address`: of a browser that is reached through its link.
 */
export async function firstReply(url: string, address?: BrowserAddress): Promise<WebSocket> {
  const through = address && { createConnection: () => connectToBrowser(address) };
  const socket = new WebSocket(url, { perMessageDeflate: false, ...through });
  await ask(socket, { id: 1, method: 'Browser.getVersion' });
  return socket;
}

/** Sends a command, once the socket is open, and resolves at its reply. */
export async function ask(socket: WebSocket, message: { id: number; method: string }) {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
  const send = () => socket.send(JSON.stringify(message));
  const closed = () => reject(new Error('closed before the reply'));
  const answered = (data: unknown) => {
    const reply = JSON.parse((data as Buffer).toString()) as Reply;
    if (reply.id !== message.id) return;
    if (reply.error === undefined) resolve(reply.result ?? {});
    else reject(new Error(`${message.method}: ${JSON.stringify(reply.error)}`));
  };
  if (socket.readyState === WebSocket.OPEN) send();
  else socket.once('open', send);
  socket.on('error', reject).on('close', closed).on('message', answered);
  return promise.finally(() =>
    socket.off('error', reject).off('close', closed).off('message', answered),
  );
}
type Reply = { id?: number; result?: Record<string, unknown>; error?: object };

let lastId = 1;

/** Sends one of CDP's commands, to a target's session if it is given. @returns its result */
export function command(
  socket: WebSocket,
  method: string,
  params: object,
  sessionId?: string,
): Promise<Record<string, unknown>> {
  lastId += 1;
  return ask(socket, { id: lastId, method, ...{ params, sessionId } });
}
