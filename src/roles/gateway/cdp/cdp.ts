import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { Connection } from '../connections/connection.ts';
import { dial, readResponseHead } from '../connections/dial.ts';
import type { ClientHandshake } from '../connections/handshake.ts';
import { headerLines } from '../error-response.ts';
import { closeGracefully } from '../connections/close-gracefully.ts';
import { keepDownloads, MARK } from './keep-downloads.ts';
import { createMessageRewriter } from './message-rewriter.ts';
import { dialOwnBrowser, type CdpEndpoint } from './own-browser.ts';

/** Headers that are forwarded. Chromium rejects every Origin and needs no other header. */
const HANDSHAKE_HEADERS = [
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
] as const;
const ALONE = 'client_no_context_takeover';

/**
 * Connects a client's WebSocket to a DevTools socket of its browser, or of the page `pageId`. The
 * browser answers the handshake itself; from then on bytes are forwarded, all but the commands that
 * say where downloads go (`keep-downloads.ts`). The path of the browser's own socket has its GUID,
 * which another browser refuses; a page's path does not.
 * Returns null once bytes flow, or a rejection, before anything was sent to the client.
 * @throws DialFailed if the browser does not answer, or if it is another one.
 */
export async function connectCdp(
  { request, head, headers }: ClientHandshake,
  { cdp, pageId }: { cdp: CdpEndpoint; pageId: string | null },
  connection: Connection,
  timeoutMs: number,
): Promise<Rejection | null> {
  const bound = { timeoutMs, signal: connection.signal };
  const browser =
    pageId === null ? await dial(cdp, bound) : (await dialOwnBrowser(cdp, bound)).socket;
  const path = pageId === null ? cdp.path : `/devtools/page/${pageId}`;
  return await joinWebSockets({ request, head, headers }, browser, connection, {
    ...bound,
    at: { port: cdp.port, path },
  });
}

/**
 * Passes the client's handshake on to a server of WebSockets, and then bytes in both directions.
 * Returns null once they flow, or a rejection, before anything was sent to the client.
 * @throws DialFailed if the server does not answer
 */
export async function joinWebSockets(
  { request, head, headers }: ClientHandshake,
  browser: Socket,
  connection: Connection,
  bound: { timeoutMs: number; signal: AbortSignal; at: { port: number; path: string } },
): Promise<Rejection | null> {
  browser.write(handshake(request, bound.at));
  const answer = await readResponseHead(browser, bound);
  if (answer.status !== 101) {
    browser.destroy();
    return answer.status === 400
      ? reject('INVALID_REQUEST', {}, { message: 'The browser refused the WebSocket handshake.' })
      : { code: 'BROWSER_UNREACHABLE', context: { browser_status: answer.status } };
  }
  const client = request.socket;
  client.write(withEachMessageAlone(withHeaders(answer.bytes, headers)));
  splice(client, browser, connection, head);
  return null;
}

/**
 * Chromium accepts only an IP address or localhost as Host. Any will do: addresses in its answers
 * are rewritten before they reach a client.
 */
function handshake(request: IncomingMessage, target: { port: number; path: string }): string {
  const lines = HANDSHAKE_HEADERS.flatMap((name) => {
    const value = request.headers[name];
    return value === undefined ? [] : [`${name}: ${value}\r\n`];
  });
  return (
    `GET ${target.path} HTTP/1.1\r\nHost: 127.0.0.1:${target.port}\r\n` +
    `Connection: Upgrade\r\nUpgrade: websocket\r\n${lines.join('')}\r\n`
  );
}

/** The browser's answer with these headers below its status line. */
function withHeaders(answer: Buffer, headers: Record<string, number>): Buffer {
  const lineEnd = answer.indexOf('\r\n') + 2;
  const added = Buffer.from(headerLines(headers), 'latin1');
  return Buffer.concat([answer.subarray(0, lineEnd), added, answer.subarray(lineEnd)]);
}

/**
 * The browser's answer by which the client compresses each of its messages without those before
 * (RFC 7692, 7.1.1.2), if it compresses any: so one can be read without reading all.
 */
function withEachMessageAlone(answer: Buffer): Buffer {
  const end = answer.indexOf('\r\n\r\n');
  const head = answer.toString('latin1', 0, end);
  const alone = head.replace(/^sec-websocket-extensions: *permessage-deflate\b.*$/im, (line) =>
    line.includes(ALONE) ? line : `${line}; ${ALONE}`,
  );
  return Buffer.concat([Buffer.from(alone, 'latin1'), answer.subarray(end)]);
}

/**
 * Splices two sockets, with back-pressure (64 KiB per direction, then the sender waits).
 * The end, half-close, error or reset of either socket ends both, and so does the connection's
 * signal. While a person holds the session, the client is not read: what it sends waits in the
 * socket, in order, and the client waits once 64 KiB and the kernel's buffers are full.
 * @param head what the client sent after its handshake
 */
function splice(client: Socket, browser: Socket, connection: Connection, head: Buffer): void {
  let isEnding = false;
  let isRead = false;
  const before = { client: client.bytesRead, browser: browser.bytesRead };
  const commands = createMessageRewriter(MARK, keepDownloads);
  client.pause();
  if (head.length > 0 && !client.readableEnded) client.unshift(head);
  client.on('data', onCommands);
  browser.on('drain', flow);
  connection.onSteering(steer);
  steer();
  browser.pipe(client, { end: false });
  for (const leg of [client, browser]) {
    leg.once('end', finish);
    leg.once('close', onClose);
  }
  connection.signal.addEventListener('abort', cut, { once: true });
  connection.spliced({
    measure: () => ({
      fromClient: client.bytesRead - before.client,
      fromBrowser: browser.bytesRead - before.browser,
      waitingForBrowser: browser.writableLength,
      waitingForClient: client.writableLength,
    }),
  });
  if (connection.signal.aborted || client.destroyed || browser.destroyed) cut();

  function steer(): void {
    if (isEnding || connection.maySteer() === isRead) return;
    isRead = !isRead;
    flow();
  }
  function flow(): void {
    if (isRead && !browser.writableNeedDrain) client.resume();
    else client.pause();
  }
  function onCommands(chunk: Buffer): void {
    if (isEnding) return;
    for (const bytes of commands.take(chunk)) browser.write(bytes);
    if (browser.writableNeedDrain) client.pause();
  }
  function finish(): void {
    if (isEnding) return;
    isEnding = true;
    client.off('data', onCommands);
    browser.off('drain', flow);
    browser.unpipe(client);
    closeGracefully(client);
    closeGracefully(browser);
  }
  function cut(): void {
    client.destroy();
    browser.destroy();
  }
  function onClose(): void {
    if (client.destroyed && browser.destroyed) connection.closed();
    else finish();
  }
}
