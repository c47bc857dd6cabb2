import type { Duplex } from 'node:stream';

/** Long enough for a last frame to cross an ocean, short enough not to delay a shutdown. */
const LINGER_MS = 500;

/**
 * Closes a socket so that its peer still gets the bytes written to it: half-closes it and discards
 * input until the peer closes too, for at most half a second. Closing at once with unread bytes
 * would make the kernel send a reset, which may overtake the last bytes.
 */
export function closeGracefully(socket: Duplex): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => {}); // 'close' follows
  socket.end();
  socket.resume();
}
