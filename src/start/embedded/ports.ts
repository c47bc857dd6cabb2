import { once } from 'node:events';
import { createServer } from 'node:net';

/** A configured port is used by another program, or this user may not listen on it. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken';
}

/**
 * Tries to listen on each port, so that a start fails early if a port is taken.
 * @throws PortTaken naming the variable
 */
export async function assertPortsFree(
  ports: readonly { variable: string; host: string; port: number }[],
): Promise<void> {
  for (const [index, { variable, host, port }] of ports.entries()) {
    const twin = ports.slice(0, index).find((other) => other.port === port);
    if (twin !== undefined)
      throw new PortTaken(`${variable}: ${host}:${port} is ${twin.variable}’s already`);
    const server = createServer();
    try {
      server.listen(port, host);
      await once(server, 'listening');
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const why =
        code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be used: ${message}`;
      throw new PortTaken(`${variable}: ${host}:${port} ${why}`);
    }
    server.close();
    await once(server, 'close');
  }
}
