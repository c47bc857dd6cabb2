import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { startServer, type RealServer } from './real-server.ts';
import { freePort } from './ports.ts';

/** A real redis-server without persistence, for this test file alone: a kill loses all data. */
export type RealRedis = Omit<RealServer, 'signal'> & {
  readonly url: string;
  readonly port: number;
  /** Sends one command and returns its raw reply, for commands that the read model does not use. */
  command(...words: string[]): Promise<string>;
  /** Stops it from answering while it keeps its connections, until `resume`. */
  hang(): void;
  resume(): void;
};

/** A Redis that has said nothing for this long hangs. */
const SILENCE_MS = 60_000;

/** Starts `process.env.REDIS_SERVER`, or `redis-server` of the PATH, on a free loopback port. */
export async function startRedis(): Promise<RealRedis> {
  const port = await freePort();
  const place = ['--bind', '127.0.0.1', '--port', String(port), '--dir', tmpdir()];
  const server = await startServer({
    program: process.env['REDIS_SERVER'] ?? 'redis-server',
    args: [...place, '--save', '', '--appendonly', 'no'],
    answers: () => pongs(port),
  });
  return {
    ...server,
    url: `redis://127.0.0.1:${port}`,
    port,
    command: (...words) => ask(port, words),
    hang: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT'),
  };
}

/** The same with TLS alone, for one user with all permissions; `default` has none. */
export async function startSecureRedis(
  certificate: { cert: string; key: string },
  { user, password }: { user: string; password: string },
): Promise<Omit<RealServer, 'signal'> & { readonly port: number }> {
  const port = await freePort();
  const place = ['--bind', '127.0.0.1', '--port', '0', '--tls-port', String(port)];
  const files = ['--tls-cert-file', certificate.cert, '--tls-key-file', certificate.key];
  const rights = ['on', `>${password}`, '~*', '&*', '+@all'];
  const users = ['--user', 'default', 'off', '--user', user, ...rights];
  const server = await startServer({
    program: process.env['REDIS_SERVER'] ?? 'redis-server',
    args: [...place, ...files, '--tls-auth-clients', 'no', ...users, '--save', ''],
    answers: () => listens(port),
  });
  return { ...server, port };
}

async function listens(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function pongs(port: number): Promise<boolean> {
  try {
    return (await ask(port, ['PING'])).startsWith('+PONG');
  } catch {
    return false;
  }
}

async function ask(port: number, words: readonly string[]): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error('silent')));
  try {
    socket.write(`${words.join(' ')}\r\n`);
    const [reply] = (await once(socket, 'data')) as [Buffer];
    return reply.toString();
  } finally {
    socket.destroy();
  }
}
