import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

/** How long what still comes of a refused body is read and dropped. */
const LINGER_MS = 2_000;

/**
 * Lets the sender of a body read an answer that came before all of it, where the connection closes
 * with that answer. Node would close it at once; the kernel answers what arrives afterwards with a
 * reset, and the answer is lost: a proxy takes the service for dead then.
 */
export function lingerAtClose(request: IncomingMessage, lingerMs = LINGER_MS): void {
  const { headers, socket } = request;
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return;
  socket.destroySoon = () => {
    if (request.complete || socket.destroyed) return Socket.prototype.destroySoon.call(socket);
    const close = (): void => void socket.destroy();
    const late = setTimeout(close, lingerMs);
    socket.once('close', () => clearTimeout(late));
    request.once('end', close);
    request.resume();
    socket.end();
  };
}
