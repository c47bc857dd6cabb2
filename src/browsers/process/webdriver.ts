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
/**
 * Starts before a connection is given up. It ends at once where the port that it has chosen for
 * IPv6 is taken for IPv4: 3 of 200 did, started by twenties.
 */
const STARTS_MAX = 10;
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
  const drop = () => void (started = null);

  async function drivenPort(): Promise<number> {
    const { child, port } = await startDriver(program, options, () => isOpen);
    void child.exited.then(drop);
    return port;
  }
  function track(socket: Socket): void {
    sockets.add(socket);
    socket.on('error', () => {}); // 'close' follows
    socket.once('close', () => sockets.delete(socket));
  }
  async function join(client: Socket): Promise<void> {
    const head = await readFirstLine(client);
    if (!isOpen || head === null || !hasPath(head, options.path)) return void client.destroy();
    if (started === null) {
      started = drivenPort();
      started.catch(drop);
    }
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
 * Starts it, again where it ends before it listens. One that says nothing in time is killed, so
 * that the next connection starts another one.
 * @param isWanted whether it may still be started
 * @throws Error where none listens
 */
async function startDriver(program: string, options: DriverOptions, isWanted: () => boolean) {
  const lateAt = performance.now() + (options.startMs ?? START_MS);
  let told = '';
  for (let starts = 1; starts <= STARTS_MAX && isWanted(); starts += 1) {
    const { child, listening } = startOnce(program, options, lateAt - performance.now());
    const port = await listening;
    if (port !== null) return { child, port };
    told = child.tail();
  }
  throw new Error(`the driver did not start: ${told}`);
}

/** `listening` is its port; null: it has ended before it had one. It rejects where that is late. */
function startOnce(program: string, { path, place, onStarted }: DriverOptions, withinMs: number) {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
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
    reject(new Error('the driver has not printed its port in time'));
    child.process.kill('SIGKILL');
  }, withinMs);
  void child.exited.then(() => resolve(null));
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
