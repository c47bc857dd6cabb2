import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Socket } from 'node:net';
import { BidiMapper } from 'chromium-bidi';
import { MapperCdpConnection } from 'chromium-bidi/out/Default/gen/src/cdp/CdpConnection.js';
import { WebSocket, WebSocketServer, type RawData } from 'ws';
import { keepDownloads, MARK } from '../cdp/keep-downloads.ts';
import { parseCommand } from './bidi-commands.ts';

/**
 * A program of its own for one client: WebDriver BiDi on descriptor 4, the browser's DevTools on
 * descriptor 3. It has no secret of the service, and ends with either of the two. It says how much
 * memory it has every few seconds, by which the gateway knows that it runs.
 */

const BEAT_MS = 2_000;
const MIB = 1024 * 1024;
/** Of the browser: a screenshot of a long page as base64. */
const ANSWER_BYTES_MAX = 128 * MIB;
/** Of the client: a script. */
const COMMAND_BYTES_MAX = 4 * MIB;
/** What may wait for a client or a browser that reads slowly, before the next message. */
const WAITING_BYTES_MAX = 64 * MIB;

const { port, path, memoryBytes } = JSON.parse(process.env['BIDI'] ?? '') as {
  port: number;
  path: string;
  memoryBytes: number;
};

type OnMessage = Parameters<BidiTransport['setOnMessage']>[0];
type BidiTransport = Parameters<typeof BidiMapper.BidiServer.createAndStart>[0];

function end(): never {
  process.exit(1);
}

/** Sends a message; ends where earlier ones wait because the other side does not read. */
function send(socket: WebSocket, message: string): void {
  if (socket.bufferedAmount > WAITING_BYTES_MAX) end();
  socket.send(message);
}

/** Messages that come and wait are outside the heap and its limit. */
function beat(): void {
  const all = process.memoryUsage.rss();
  if (all > memoryBytes) end();
  process.stdout.write(`${Math.round(all * ownShare())}\n`);
}

/** Of its memory, what it does not share with the gateway's other processes: not the program. */
function ownShare(): number {
  try {
    const [, resident, shared] = readFileSync('/proc/self/statm', 'utf8').split(' ').map(Number);
    return 1 - Number(shared) / Number(resident) || 1;
  } catch {
    return 1;
  }
}

/** The browser's DevTools socket, by its path. */
async function openBrowser(): Promise<WebSocket> {
  const browser = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
    createConnection: () => new Socket({ fd: 3, readable: true, writable: true }),
    perMessageDeflate: false,
    maxPayload: ANSWER_BYTES_MAX,
  });
  browser.on('error', end);
  browser.on('close', end);
  await new Promise((resolve) => browser.once('open', resolve));
  return browser;
}

function cdpTransport(browser: WebSocket) {
  return {
    setOnMessage(onMessage: (json: string) => void) {
      browser.on('message', (data) => onMessage(textOf(data)));
    },
    async sendMessage(json: string): Promise<void> {
      send(browser, (json.includes(MARK) ? keepDownloads(json) : null) ?? json);
    },
    close: end,
  };
}

/** Nothing is read of the client before BiDi has started: its handshake is answered then. */
function clientTransport(): BidiTransport & { serve: (client: WebSocket) => void } {
  let handle: OnMessage | null = null;
  let client: WebSocket | null = null;
  return {
    serve(connected) {
      client = connected;
      connected.on('error', end);
      connected.on('close', end);
      connected.on('message', (data) => {
        const parsed = parseCommand(textOf(data));
        if ('refusal' in parsed) send(connected, JSON.stringify(parsed.refusal));
        else void handle?.(parsed.command);
      });
    },
    setOnMessage(onMessage) {
      handle = onMessage;
    },
    sendMessage(message) {
      if (client !== null) send(client, JSON.stringify(message));
    },
    close: end,
  };
}

function textOf(data: RawData): string {
  return (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)).toString('utf8');
}

process.on('uncaughtException', end);
process.on('unhandledRejection', end);
process.stdout.on('error', end);
setInterval(beat, BEAT_MS);
const transport = clientTransport();
const connection = new MapperCdpConnection(cdpTransport(await openBrowser()));
const session = await connection.createBrowserSession();
await BidiMapper.BidiServer.createAndStart(transport, connection, session, '');
const server = createServer();
const sockets = new WebSocketServer({
  server,
  perMessageDeflate: false,
  maxPayload: COMMAND_BYTES_MAX,
});
sockets.once('connection', transport.serve);
server.emit('connection', new Socket({ fd: 4, readable: true, writable: true }));
