import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Socket } from 'node:net';
import { BidiMapper } from 'chromium-bidi';
import { BidiParser } from 'chromium-bidi/out/Default/gen/src/bidiTab/BidiParser.js';
import { MapperCdpConnection } from 'chromium-bidi/out/Default/gen/src/cdp/CdpConnection.js';
import { WebSocket, WebSocketServer, type RawData } from 'ws';
import { keepDownloads, MARK } from '../cdp/keep-downloads.ts';
import { attachedCapabilities, createBidiSession, type MapperMessage } from './bidi-session.ts';

/**
 * A program of its own for one client: WebDriver BiDi on descriptor 4, the browser's DevTools on
 * descriptor 3. It has no secret of the service, and ends with either of the two. It says how much
 * memory it has every few seconds, by which the gateway knows that it runs.
 */

const BEAT_MS = 2_000;
const MIB = 1024 * 1024;
/** The close code of a session that has ended by a command. */
const NORMAL = 1_000;
/** Of the browser: a screenshot of a long page as base64. */
const ANSWER_BYTES_MAX = 128 * MIB;
/** Of the client: a script. */
const COMMAND_BYTES_MAX = 4 * MIB;
/** What may wait for a client or a browser that reads slowly, before the next message. */
const WAITING_BYTES_MAX = 64 * MIB;

const { port, path, memoryBytes, attached } = JSON.parse(process.env['BIDI'] ?? '') as {
  port: number;
  path: string;
  memoryBytes: number;
  /** The capabilities of the client's session of WebDriver, as JSON; null: it has none. */
  attached: string | null;
};

type OnMessage = Parameters<BidiTransport['setOnMessage']>[0];
type BidiTransport = Parameters<typeof BidiMapper.BidiServer.createAndStart>[0];

function end(): never {
  process.exit(1);
}

/**
 * Sends a message; ends where earlier ones wait because the other side does not read. Resolves once
 * it has gone.
 */
function send(socket: WebSocket, message: string): Promise<void> {
  if (socket.bufferedAmount > WAITING_BYTES_MAX) end();
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.send(message, () => resolve());
  return promise;
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
      await send(browser, (json.includes(MARK) ? keepDownloads(json) : null) ?? json);
    },
    close: end,
  };
}

/** Of the mapper: commands come from the session, answers and events go to it. */
function mapperTransport() {
  let handle: OnMessage | null = null;
  let onMessage: ((message: MapperMessage) => void) | null = null;
  const transport: BidiTransport = {
    setOnMessage(taken) {
      handle = taken;
    },
    sendMessage(message) {
      onMessage?.(message);
    },
    close: end,
  };
  return {
    transport,
    send: (command: Parameters<OnMessage>[0]) => void handle?.(command),
    onMessage: (taken: (message: MapperMessage) => void) => void (onMessage = taken),
  };
}

function textOf(data: RawData): string {
  return (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)).toString('utf8');
}

process.on('uncaughtException', end);
process.on('unhandledRejection', end);
process.stdout.on('error', end);
setInterval(beat, BEAT_MS);
const mapper = mapperTransport();
const connection = new MapperCdpConnection(cdpTransport(await openBrowser()));
const devtools = await connection.createBrowserSession();
const parser = new BidiParser();
await BidiMapper.BidiServer.createAndStart(mapper.transport, connection, devtools, '', parser);
let client: WebSocket | null = null;
const session = createBidiSession({
  toMapper: mapper.send,
  toClient: async (message) =>
    client === null ? undefined : await send(client, JSON.stringify(message)),
  close: () => client?.close(NORMAL),
  newId: randomUUID,
});
mapper.onMessage(session.takeOfMapper);
if (attached !== null) await session.attach(attachedCapabilities(attached));
// Nothing is read of the client before: its handshake is answered now.
const server = createServer();
const sockets = new WebSocketServer({
  server,
  perMessageDeflate: false,
  maxPayload: COMMAND_BYTES_MAX,
});
sockets.once('connection', (connected) => {
  client = connected;
  connected.on('error', end);
  connected.on('close', end);
  connected.on('message', (data, isBinary) => session.take({ text: textOf(data), isBinary }));
});
server.emit('connection', new Socket({ fd: 4, readable: true, writable: true }));
