import type { Duplex } from 'node:stream';

/** Long enough for a last frame to cross an ocean, short enough that nobody waits for it. */
const LINGER_MS = 500;

/**
 * Ends a socket so that its peer still gets what was written: half-close, read on and throw away
 * until the peer closes too, for at most half a second. Closing at once with unread bytes would
 * make the kernel send a reset, which may overtake the last bytes.
 */
export function endSoftly(socket: Duplex): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => {}); // 'close' follows
  socket.end();
  socket.resume();
}
