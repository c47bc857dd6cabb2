import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import {
  createServer as createTcpServer,
  Socket,
  type AddressInfo,
  type Server as TcpServer,
} from 'node:net';
import type { Duplex } from 'node:stream';
import { lingerAtClose } from '#src/kernel/http/linger.ts';
import { KEEP_ALIVE_MS } from '#src/browsers/link/browser-link.ts';

/**
 * Where a listener listens; with a key and a certificate it speaks TLS. `methodsInAnyCase`, without
 * TLS: nodriver asks `get /json/version`, which Chromium takes and Node's parser refuses.
 */
export type ListenOn = {
  host: string;
  port: number;
  key?: string;
  cert?: string;
  methodsInAnyCase?: boolean;
};

export type Handlers = {
  onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  onUpgrade: (request: IncomingMessage, head: Buffer) => void;
  /** Answers bytes that are no request, or a request that took too long. */
  onMalformed: (socket: Duplex) => void;
  /** Called for each new socket; false: it is closed at once. */
  onSocket: (socket: Socket) => boolean;
};

type Listener = {
  address: AddressInfo;
  /** Applies to the next handshakes; no effect without TLS. */
  setCertificate(certificate: { key: string; cert: string }): void;
} & AsyncDisposable;

const SERVER_OPTIONS = {
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: KEEP_ALIVE_MS,
  headersTimeout: 10_000,
  requestTimeout: 10_000, // only commands of WebDriver have a body
  keepAliveTimeout: 5_000,
  requireHostHeader: false, // such a request is answered like the others, not by Node
  connectionsCheckingInterval: 2_000,
};

/** Connections on which the body of this request may take longer to arrive. */
const slow = new WeakMap<Socket, IncomingMessage>();

/**
 * Lets the body of this request take longer. The caller bounds the silence in the middle of it, and
 * closes the connection where it does not read it.
 */
export function allowSlowBody(request: IncomingMessage): void {
  const { socket } = request;
  slow.set(socket, request);
  const arrived = (): void => {
    if (slow.get(socket) === request) slow.delete(socket);
  };
  request.once('end', arrived);
  request.once('close', arrived);
}

/** At disposal, time for open sockets to send their last bytes. */
const CLOSE_MS = 1_500;

/**
 * Listens, plain or TLS. Beyond `socketsMax`, new sockets are closed at once.
 * @throws Error if the address is in use.
 */
export async function startListener(
  { host, port, key, cert, methodsInAnyCase = false }: ListenOn,
  { onRequest, onUpgrade, onMalformed, onSocket }: Handlers,
  socketsMax: number,
): Promise<Listener> {
  const server =
    key === undefined || cert === undefined
      ? createServer(SERVER_OPTIONS)
      : createTlsServer({ ...SERVER_OPTIONS, key, cert, handshakeTimeout: 10_000 });
  const entry = methodsInAnyCase ? inAnyCase(server) : server;
  entry.maxConnections = socketsMax;
  // At its acceptance, so that one that stays silent counts, too.
  entry.on('connection', (socket: Socket) => {
    if (!onSocket(socket)) socket.destroy();
  });
  server.on('request', (request) => lingerAtClose(request));
  server.on('request', onRequest);
  server.on('checkExpectation', onRequest); // or Node would answer an unknown Expect
  server.on('upgrade', (request: IncomingMessage, _socket, head: Buffer) =>
    onUpgrade(request, head),
  );
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    const isSlow = socket instanceof Socket && slow.has(socket);
    if (isSlow && error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return;
    socket.on('error', () => {}); // 'close' follows
    // A browser opens connections ahead: it would take an answer for that of its next request.
    const isUsed = !(socket instanceof Socket) || socket.bytesRead > 0;
    if (socket.writable && isUsed) onMalformed(socket);
    else socket.destroy();
  });

  const { promise, resolve, reject: fail } = Promise.withResolvers<undefined>();
  entry.once('error', fail);
  entry.listen({ host, port }, () => resolve(undefined));
  await promise;
  entry.off('error', fail);
  return {
    address: entry.address() as AddressInfo, // never a pipe's name: it listens on a port
    setCertificate(certificate) {
      if (server instanceof TlsServer) server.setSecureContext(certificate);
    },
    [Symbol.asyncDispose]: () => close(entry, server),
  };
}

/** How long a socket may say nothing before it is one of the server's, which has its own limit. */
const SILENT_MS = 10_000;

/** Hands sockets to the server, with the method of their first request in capitals. */
function inAnyCase(server: Server): TcpServer {
  const entry = createTcpServer({ noDelay: true }, (socket) => {
    const onError = (): void => {
      socket.destroy();
    };
    socket.on('error', onError);
    socket.setTimeout(SILENT_MS, onError);
    socket.once('data', (chunk: Buffer) => {
      socket.pause();
      socket.setTimeout(0);
      socket.off('timeout', onError);
      const method = /^[a-z]{3,7}(?= )/.exec(chunk.toString('latin1', 0, 8))?.[0] ?? '';
      const rest = chunk.subarray(method.length);
      socket.unshift(Buffer.concat([Buffer.from(method.toUpperCase()), rest]));
      server.emit('connection', socket);
      process.nextTick(() => socket.resume());
    });
  });
  // Without this event Node's server has no limits of time and no list of its connections.
  entry.once('listening', () => server.emit('listening'));
  entry.once('close', () => server.close());
  return entry;
}

/** Stops listening; resolves once all sockets are closed, forcibly after `CLOSE_MS`. */
async function close(entry: TcpServer, server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
  entry.close(() => resolve(undefined));
  server.closeIdleConnections();
  await promise;
  clearTimeout(timer);
}
