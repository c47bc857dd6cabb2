import { WebSocket } from 'ws';
import { connectToBrowser, type BrowserAddress } from '#src/browser-link/browser-link.ts';

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
export function ask(socket: WebSocket, command: { id: number; method: string }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const send = () => socket.send(JSON.stringify(command));
  const closed = () => reject(new Error('closed before the reply'));
  const answered = (data: unknown) => {
    if (JSON.parse((data as Buffer).toString()).id === command.id) resolve();
  };
  if (socket.readyState === WebSocket.OPEN) send();
  else socket.once('open', send);
  socket.on('error', reject).on('close', closed).on('message', answered);
  return promise.finally(() =>
    socket.off('error', reject).off('close', closed).off('message', answered),
  );
}
