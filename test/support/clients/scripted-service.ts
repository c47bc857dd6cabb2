import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createClient, type ClientOptions } from '#src/apps/client/client.ts';

/** A received request. */
export type Asked = { method: string; url: string; headers: IncomingHttpHeaders; body: string };
type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** A server that answers each request with the next of the given answers, and a client of it. */
export async function startScripted(answers: Answer[], options: Partial<ClientOptions> = {}) {
  const asked: Asked[] = [];
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    asked.push({ method, url, headers, body: await text(request) });
    (answers.shift() ?? refuse(404, 'NOT_FOUND'))(response, request);
  }
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    asked,
    url,
    client: createClient({ url, apiKey: 'bss_acme_key', ...options }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function json(status: number, body: object): Answer {
  return (response) => void response.writeHead(status).end(JSON.stringify(body));
}

export function refuse(
  status: number,
  error: string,
  headers: Record<string, string> = {},
  context: object = { of: error },
): Answer {
  const body = { error, message: 'No.', code: status, context };
  return (response) => void response.writeHead(status, headers).end(JSON.stringify(body));
}

export const hangUp: Answer = (response) => void response.destroy();
export const saySome: Answer = (response) =>
  void response.writeHead(502).end('<h1>Bad gateway</h1>');
export const sayNothing: Answer = () => {};

/** A stream of these pieces, from the asked position or 7; it ends unless it is to stay open. */
export function stream(pieces: string[], end: 'end' | 'break' | 'stay' = 'end'): Answer {
  return (response, { headers }) => {
    const position = { 'last-event-id': headers['last-event-id'] ?? '7' };
    response.writeHead(200, { 'content-type': 'text/event-stream', ...position });
    for (const piece of pieces) response.write(piece);
    if (end === 'end') response.end();
    // The written bytes are sent first.
    if (end === 'break') setImmediate(() => setImmediate(() => response.destroy()));
  };
}

/** An event as the service sends it. */
export function frame(sequence: number, type = 'session.accessed'): string {
  const data = JSON.stringify({ sequence, type, text: 'ä – 漢' });
  return `id: ${sequence}\nevent: ${type}\ndata: ${data}\n\n`;
}
