import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { rfbReady } from '#src/browsers/rfb.ts';

/** A VNC server that accepts connections and says nothing. */
async function startSilent() {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { server, address: { host: '127.0.0.1', port: (server.address() as AddressInfo).port } };
}

/** Errors that no listener takes end the process of the service. */
function untaken(): unknown[] {
  const errors: unknown[] = [];
  const note = (error: unknown) => void errors.push(error);
  process.prependListener('uncaughtException', note);
  onTestFinished(() => void process.off('uncaughtException', note));
  return errors;
}

test.each(['before', 'while'])(
  'a launch that is stopped %s its screen is asked rejects',
  async (when) => {
    const errors = untaken();
    const { server, address } = await startSilent();
    const stopping = new AbortController();
    if (when === 'before') stopping.abort(new Error('stopped'));
    const connected = once(server, 'connection');
    const ready = rfbReady(address, stopping.signal);
    if (when === 'while') void connected.then(() => stopping.abort(new Error('stopped')));
    await expect(ready).rejects.toThrow();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(errors).toEqual([]);
  },
);
