import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer, type RealServer } from './real-server.ts';
import { freePort } from './ports.ts';

/** A real nats-server with JetStream, for this test file alone. */
export type RealNats = Omit<RealServer, 'signal'> & {
  readonly url: string;
  readonly port: number;
  /** Has it read its configuration and its certificates again. */
  reload(): void;
  /** Stops it from answering while it keeps its connections, until `resume`. */
  hang(): void;
  resume(): void;
  /** Restarts it with additional lines of configuration. */
  reconfigure(more: string): Promise<void>;
};

/**
 * Starts `process.env.NATS_SERVER`, or `nats-server` of the PATH, on a free loopback port with its
 * own directory; disposal stops it and removes the directory.
 * @param more additional lines of configuration
 */
export async function startNats(more = ''): Promise<RealNats> {
  const directory = await mkdtemp(join(tmpdir(), 'real-nats-'));
  const port = await freePort();
  const config = join(directory, 'more.conf');
  await writeFile(config, more);
  const place = ['-js', '-a', '127.0.0.1', '-p', String(port), '-sd', directory];
  const server = await startServer({
    program: process.env['NATS_SERVER'] ?? 'nats-server',
    args: [...place, '-c', config],
    answers: () => greets(port),
  });
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    pid: server.pid,
    kill: server.kill,
    restart: server.restart,
    reload: () => server.signal('SIGHUP'),
    hang: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT'),
    async reconfigure(other) {
      await writeFile(config, other);
      await server.restart();
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Whether a server on the port greets like NATS. */
async function greets(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.setTimeout(1_000, () => socket.destroy(new Error('silent')));
  try {
    const [greeting] = (await once(socket, 'data')) as [Buffer];
    return greeting.toString().startsWith('INFO');
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
