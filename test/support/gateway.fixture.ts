import { randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket, WebSocketServer } from 'ws';
import { startGateway, type GatewayOptions } from '#src/roles/gateway/gateway.ts';
import type { SessionLookup } from '#src/roles/gateway/access/session-directory.ts';
import { createTickets, type Grant } from '#src/roles/gateway/access/ticket.ts';
import { createUrls } from '#src/roles/gateway/access/urls.ts';

/** Waits for a fact; names it in the error. The time-out is for hangs, not for slow machines. */
export async function until(fact: () => boolean, what: string, withinMs = 60_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!fact()) {
    if (Date.now() > deadline) throw new Error(`never: ${what}`);
    await sleep(5);
  }
}

/**
 * A stand-in for Chromium's DevTools server: echoes messages, and refuses the same requests as
 * Chromium.
 */
export async function startEchoBrowser() {
  const path = `/devtools/browser/${randomUUID()}`;
  const sockets = new Set<Socket>();
  const handshakes: IncomingHttpHeaders[] = [];
  const clients: WebSocket[] = [];
  const changed: Record<string, unknown> = {};
  const server = createServer((request, response) => {
    const host = request.headers.host;
    const documents: Record<string, unknown> = {
      '/json/version': { Browser: 'Echo/1', webSocketDebuggerUrl: `ws://${host}${path}` },
      '/json/list': [
        {
          id: 'A1',
          title: `ws://${host}/devtools/page/A1`,
          devtoolsFrontendUrl: `https://inspector.example/x.html?ws=${host}/devtools/page/A1`,
          webSocketDebuggerUrl: `ws://${host}/devtools/page/A1`,
        },
      ],
      '/json/protocol': { domains: [] },
      ...changed,
    };
    response.end(JSON.stringify(documents[request.url ?? ''] ?? {}));
  });
  const echo = new WebSocketServer({ noServer: true });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('upgrade', (request, socket, head) => {
    handshakes.push(request.headers);
    const isKnown = request.url === path || request.url === '/devtools/page/A1';
    if (!isKnown || request.headers.origin !== undefined) {
      socket.end('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    echo.handleUpgrade(request, socket, head, (client) => {
      clients.push(client);
      client.on('error', () => {});
      client.on('message', (data, isBinary) => client.send(data, { binary: isBinary }));
    });
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    endpoint: { host: '127.0.0.1', port: (server.address() as AddressInfo).port, path },
    sockets,
    handshakes,
    /** Documents to answer in place of its own, by their path. */
    changed,
    /** The browser's side of each WebSocket, in order. */
    clients,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A stand-in for an RFB server: a TCP listener whose sockets the test controls. */
export async function startScreen() {
  const sockets = new Set<Socket>();
  const received: Buffer[] = [];
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => received.push(chunk));
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    endpoint: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    sockets,
    received,
    /** The first connection. */
    async socket(): Promise<Socket> {
      await until(() => sockets.size > 0, 'a connection to the screen');
      return [...sockets][0] as Socket;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const MASTER_KEY = Buffer.alloc(32, 7);

/** Of which epoch an address is, of which key (its SHA-256 in hex), and for what. */
type IssuedTo = { epoch?: number; keyHash?: string | null; grant?: Grant };

/**
 * A gateway over a directory that the test fills; `lookups`, `accesses` and `logged` record its
 * calls.
 */
export async function startTestGateway(options: Partial<GatewayOptions> = {}) {
  const tickets = createTickets(MASTER_KEY);
  const directory = new Map<string, SessionLookup>();
  /** Holders whose key is revoked. */
  const revoked = new Set<string>();
  const accesses: string[] = [];
  const logged: string[] = [];
  const lookups: string[] = [];
  const note = (fact: unknown, message?: string): void => {
    logged.push(JSON.stringify({ ...(fact as object), message }));
  };
  const gateway = await startGateway({
    listen: { host: '127.0.0.1', port: 0 },
    tickets,
    sessions: {
      async find(_organizationId, id) {
        lookups.push(id);
        return directory.get(id) ?? null;
      },
    },
    keys: { isLive: (_organizationId, holder) => !revoked.has(holder) },
    onAccess: ({ sessionId }, via) => accesses.push(`${sessionId} ${via}`),
    log: { debug: note, info: note, warn: note, error: note },
    ...options,
  });
  const port = gateway.address.port;
  const urls = createUrls({
    wsUrl: `ws://127.0.0.1:${port}`,
    wssUrl: `wss://127.0.0.1:${gateway.tlsAddress?.port ?? port}`,
    tickets,
  });
  return {
    gateway,
    directory,
    revoked,
    tickets,
    accesses,
    logged,
    lookups,
    port,
    http: `http://127.0.0.1:${port}`,
    cdpUrl: (sessionId: string, { epoch = 0, keyHash = null }: IssuedTo = {}) =>
      urls.cdpUrl({ organizationId: 'org', id: sessionId, accessEpoch: epoch }, keyHash),
    bidiUrl: (sessionId: string) =>
      urls.bidiUrl({ organizationId: 'org', id: sessionId, accessEpoch: 0 }, null),
    /** On the plain listener. */
    vncUrl: (sessionId: string, { epoch = 0, keyHash = null, grant }: IssuedTo = {}) =>
      urls
        .vncUrl({ organizationId: 'org', id: sessionId, accessEpoch: epoch }, keyHash, grant)
        .replace(/^wss:..[^/]*/, `ws://127.0.0.1:${port}`),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

/** A gateway with the one active session `s1`, and both its upstreams. */
export async function startSession(options: Partial<GatewayOptions> = {}) {
  const browser = await startEchoBrowser();
  const screen = await startScreen();
  const site = await startTestGateway(options);
  site.directory.set('s1', { status: 'active', cdp: browser.endpoint, vnc: screen.endpoint });
  return {
    ...site,
    browser,
    screen,
    /** Waits until no connection and no socket to an upstream is left. */
    async isClean() {
      await until(() => {
        const { open } = site.gateway.counters();
        return open.cdp + open.vnc + browser.sockets.size + screen.sockets.size === 0;
      }, 'all sockets gone');
    },
    async [Symbol.asyncDispose]() {
      await site[Symbol.asyncDispose]();
      await browser[Symbol.asyncDispose]();
      await screen[Symbol.asyncDispose]();
    },
  };
}

/** An open WebSocket that collects its messages. */
export async function openSocket(
  url: string,
  options: { protocols?: string[]; headers?: Record<string, string>; insecure?: boolean } = {},
) {
  const socket = new WebSocket(url, options.protocols ?? [], {
    perMessageDeflate: false,
    rejectUnauthorized: options.insecure !== true,
    ...(options.headers && { headers: options.headers }),
  });
  const messages: Buffer[] = [];
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  socket.on('message', (data: Buffer) => messages.push(data));
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => {});
  return {
    socket,
    messages,
    closed,
    async echoes(text: string): Promise<void> {
      socket.send(text);
      await until(() => messages.some((message) => message.toString() === text), `echo of ${text}`);
    },
  };
}

/** The HTTP response that refuses a WebSocket handshake. */
export async function refusal(url: string): Promise<{
  status: number;
  retryAfter: string | undefined;
  body: { error: string; message: string; code: number; context: Record<string, unknown> };
}> {
  const socket = new WebSocket(url);
  return await new Promise((resolve, reject) => {
    socket.on('open', () => reject(new Error('it was let in')));
    socket.on('error', reject);
    socket.on('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          retryAfter: response.headers['retry-after'],
          body: JSON.parse(Buffer.concat(chunks).toString()) as never,
        }),
      );
    });
  });
}

/** The bytes of a client's handshake. */
export function handshake(url: string): string {
  const { host, pathname } = new URL(url);
  return (
    `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
  );
}

/** A bare TCP socket after a WebSocket handshake, for clients that break the protocol. */
export async function openRaw(
  url: string,
  begin: Buffer | string = handshake(url),
): Promise<Socket> {
  const { port } = new URL(url);
  const socket = connect({ host: '127.0.0.1', port: Number(port), allowHalfOpen: true });
  socket.on('error', () => {});
  socket.write(begin);
  const answer = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
  if (!answer.toString('latin1').startsWith('HTTP/1.1 101 ')) throw new Error(String(answer));
  // The first frame may come in one packet with the answer.
  const first = answer.subarray(answer.indexOf('\r\n\r\n') + 4);
  if (first.length > 0) socket.unshift(first);
  return socket;
}

/** A masked frame, as clients send them; the mask is zero. */
export function frame(opcode: number, payload: Buffer | string): Buffer {
  const body = Buffer.from(payload);
  if (body.length > 125) throw new RangeError('short frames only');
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | body.length, 0, 0, 0, 0]), body]);
}
