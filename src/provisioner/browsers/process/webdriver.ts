import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { startChild, type Child } from './child.ts';
import type { BrowserUser } from './programs.ts';

/** A WebDriver that is started by its first connection. */
export type OfferedDriver = {
  /** On loopback. */
  port: number;
  /** Takes no more connections and closes those that are open; the program is ended elsewhere. */
  close(): void;
};

type DriverOptions = {
  /** What the paths of all commands begin with; a connection without it is closed. */
  path: string;
  place: { folder: string; env: Record<string, string>; user: BrowserUser };
  /** Called with each program that is started, so that it ends with its browser. */
  onStarted: (child: Child) => void;
  /** How long a driver has to print its port. */
  startMs?: number;
};

/**
 * It prints its port within 30 ms on an idle machine, and after more than 10 s where some 20
 * browsers start beside it on two busy cores.
 */
const START_MS = 60_000;
/** The longest wait for a connection's first line. */
const FIRST_LINE_MS = 10_000;
const FIRST_LINE_BYTES_MAX = 64 * 1024;
const STARTED = /ChromeDriver was started successfully on port (\d+)/;
/** Its messages come on stdout, which no program of a browser has. */
const WITH_MESSAGES = 'exec "$0" "$@" >&2';

/**
 * Listens for WebDriver's connections. With the first one chromedriver is started, again if it has
 * ended. A page of any browser of this machine finds the port, but does not know the path.
 */
export async function offerDriver(program: string, options: DriverOptions): Promise<OfferedDriver> {
  const sockets = new Set<Socket>();
  let started: Promise<number> | null = null;
  let isOpen = true;

  function drivenPort(): Promise<number> {
    const { child, listening } = startDriver(program, options);
    void child.exited.then(() => (started = null));
    return listening;
  }
  function track(socket: Socket): void {
    sockets.add(socket);
    socket.on('error', () => {}); // 'close' follows
    socket.once('close', () => sockets.delete(socket));
  }
  async function join(client: Socket): Promise<void> {
    const head = await readFirstLine(client);
    if (!isOpen || head === null || !hasPath(head, options.path)) return void client.destroy();
    started ??= drivenPort();
    const port = await started;
    if (!isOpen || client.destroyed) return void client.destroy();
    const driver = connect({ host: '127.0.0.1', port, noDelay: true });
    track(driver);
    driver.write(head);
    client.pipe(driver).pipe(client);
    client.once('close', () => driver.destroy());
    driver.once('close', () => client.destroy());
  }
  const server = createServer({ noDelay: true }, (client) => {
    track(client);
    join(client).catch(() => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      isOpen = false;
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * `listening` rejects where it ends or says nothing in time. It is killed then, so that the next
 * connection starts another one.
 */
function startDriver(program: string, options: DriverOptions) {
  const { path, place, onStarted, startMs = START_MS } = options;
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const args = ['--port=0', `--url-base=${path}`];
  const child = startChild('/bin/sh', ['-c', WITH_MESSAGES, program, ...args], {
    env: place.env,
    cwd: place.folder,
    user: place.user,
    onLine(line) {
      const port = STARTED.exec(line)?.[1];
      if (port !== undefined) resolve(Number(port));
    },
  });
  onStarted(child);
  const late = setTimeout(() => {
    reject(new Error('the driver did not start'));
    child.process.kill('SIGKILL');
  }, startMs);
  void child.exited.then(() => reject(new Error(`the driver ended: ${child.tail()}`)));
  promise.catch(() => undefined).finally(() => clearTimeout(late));
  return { child, listening: promise };
}

/** What has come up to the end of the first line, and after it; null: none has. */
async function readFirstLine(client: Socket): Promise<Buffer | null> {
  let head = Buffer.alloc(0);
  const { promise, resolve } = Promise.withResolvers<Buffer | null>();
  const onData = (piece: Buffer): void => {
    head = Buffer.concat([head, piece]);
    if (head.includes('\n')) resolve(head);
    else if (head.length > FIRST_LINE_BYTES_MAX) resolve(null);
  };
  const late = setTimeout(() => resolve(null), FIRST_LINE_MS);
  client.on('data', onData);
  client.once('close', () => resolve(null));
  const first = await promise;
  clearTimeout(late);
  client.off('data', onData);
  client.pause();
  return first;
}

function hasPath(head: Buffer, path: string): boolean {
  const [, target = ''] = head.toString('latin1', 0, head.indexOf('\n')).split(' ');
  return target.startsWith(`${path}/`);
}
