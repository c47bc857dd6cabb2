import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { Socket, type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { KEEP_ALIVE_MS } from '#src/browser-link/browser-link.ts';

/** Where a listener listens; with a key and a certificate it speaks TLS. */
export type ListenOn = { host: string; port: number; key?: string; cert?: string };

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
  requestTimeout: 10_000, // no route takes a body
  keepAliveTimeout: 5_000,
  requireHostHeader: false, // such a request is answered like the others, not by Node
  connectionsCheckingInterval: 1_000,
};

/** At disposal, time for open sockets to send their last bytes. */
const CLOSE_MS = 1_500;

/**
 * Listens, plain or TLS. Beyond `socketsMax`, new sockets are closed at once.
 * @throws Error if the address is in use.
 */
export async function startListener(
  { host, port, key, cert }: ListenOn,
  { onRequest, onUpgrade, onMalformed, onSocket }: Handlers,
  socketsMax: number,
): Promise<Listener> {
  const server =
    key === undefined || cert === undefined
      ? createServer(SERVER_OPTIONS)
      : createTlsServer({ ...SERVER_OPTIONS, key, cert, handshakeTimeout: 10_000 });
  server.maxConnections = socketsMax;
  server.on('connection', (socket) => {
    if (!onSocket(socket)) socket.destroy();
  });
  server.on('request', onRequest);
  server.on('checkExpectation', onRequest); // or Node would answer an unknown Expect
  server.on('upgrade', (request: IncomingMessage, _socket, head: Buffer) =>
    onUpgrade(request, head),
  );
  server.on('clientError', (_error, socket) => {
    socket.on('error', () => {}); // 'close' follows
    // A browser opens connections ahead: it would take an answer for that of its next request.
    const isUsed = !(socket instanceof Socket) || socket.bytesRead > 0;
    if (socket.writable && isUsed) onMalformed(socket);
    else socket.destroy();
  });

  const { promise, resolve, reject: fail } = Promise.withResolvers<undefined>();
  server.once('error', fail);
  server.listen({ host, port }, () => resolve(undefined));
  await promise;
  server.off('error', fail);
  return {
    address: server.address() as AddressInfo, // never a pipe's name: it listens on a port
    setCertificate(certificate) {
      if (server instanceof TlsServer) server.setSecureContext(certificate);
    },
    [Symbol.asyncDispose]: () => close(server),
  };
}

/** Stops listening; resolves once all sockets are closed, forcibly after `CLOSE_MS`. */
async function close(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
  server.close(() => resolve(undefined));
  server.closeIdleConnections();
  await promise;
  clearTimeout(timer);
}
