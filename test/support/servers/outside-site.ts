import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * A site outside of a session's browser. Its functions use nothing of this file: they run as text
 * in another network namespace, too.
 */

/** A worker that fetches what its page names. */
const WORKER = `
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('message', async ({ data, source }) => {
  const said = await fetch(data).then((answer) => answer.text()).catch(() => 'failed');
  source.postMessage(said);
});`;

/** Answers hello to any page; `/to?url=…` leads there, `/worker.js` is a service worker. */
export function answerSite(request: IncomingMessage, response: ServerResponse, worker = ''): void {
  const url = new URL(request.url ?? '/', 'http://site');
  response.setHeader('access-control-allow-origin', '*');
  if (url.pathname === '/to')
    response.writeHead(302, { location: url.searchParams.get('url') ?? '/' });
  if (url.pathname === '/worker.js') response.setHeader('content-type', 'text/javascript');
  response.end(url.pathname === '/worker.js' ? worker : 'hello');
}

/** Accepts a WebSocket, and says nothing on it. */
export function acceptWebSocket(
  { headers }: IncomingMessage,
  socket: Duplex,
  sha1: (text: string) => string,
): void {
  const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const answer = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${sha1(key)}`,
  ];
  socket.on('error', () => {});
  socket.write(`${answer.join('\r\n')}\r\n\r\n`);
}

/** What came by UDP: the protocol of it, or its text. */
export function datagramOf(message: Buffer): string {
  if (message.length >= 20 && message.readUInt32BE(4) === 0x2112_a442) return 'stun';
  if (message.length >= 1200 && ((message[0] ?? 0) & 0x80) !== 0) return 'quic';
  return message.toString().trim();
}

/** The source of a program that is such a site on all addresses of its network namespace. */
export function siteProgram(port: number): string {
  return `
  const { createHash } = require('node:crypto');
  const { createServer } = require('node:http');
  const { createSocket } = require('node:dgram');
  ${answerSite.toString()}
  ${acceptWebSocket.toString()}
  ${datagramOf.toString()}
  const worker = ${JSON.stringify(WORKER)};
  const sha1 = (text) => createHash('sha1').update(text).digest('base64');
  const server = createServer((request, response) => answerSite(request, response, worker));
  server.on('upgrade', (request, socket) => acceptWebSocket(request, socket, sha1));
  server.on('connection', (socket) => console.log('tcp ' + socket.localAddress));
  const udp = createSocket('udp4');
  udp.on('message', (message) => console.log('udp ' + datagramOf(message)));
  udp.bind(${port}, () => server.listen(${port}, '0.0.0.0', () => console.log('ready')));
`;
}
