import { once } from 'node:events';
import { connect } from 'node:net';
import type { Endpoint } from './browsers/browsers.ts';

/** Resolves when a VNC port has sent its greeting. */
export async function rfbReady({ host, port }: Endpoint, signal: AbortSignal): Promise<void> {
  const socket = connect({ host, port, signal });
  try {
    const closed = once(socket, 'close', { signal }).then(() => null);
    const greeted = once(socket, 'data', { signal }) as Promise<[Buffer]>;
    greeted.catch(() => {});
    closed.catch(() => {});
    const first = await Promise.race([greeted, closed]);
    if (first === null) throw Object.assign(new Error('closed'), { code: 'ECONNRESET' });
    if (!first[0].toString('latin1').startsWith('RFB '))
      throw new Error(`port ${port} does not speak RFB`);
  } finally {
    socket.destroy();
  }
}
