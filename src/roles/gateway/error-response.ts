import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { errors, problemBody, type Rejection } from '#src/kernel/errors.ts';
import { boundReading } from '#src/kernel/http/bound-reading.ts';
import { closeGracefully } from './connections/close-gracefully.ts';

export function statusOf(refusal: Rejection): number {
  return errors[refusal.code].status;
}

/** Answers an HTTP request in the API's error shape. */
export function sendRejection(response: ServerResponse, refusal: Rejection): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, headers, body } = render(refusal);
  sendBody(response, status, headers, body);
}

/** Answers with a document, of which no cache keeps a copy. */
export function sendJson(response: ServerResponse, body: string): void {
  sendText(response, body, 'application/json');
}

/** The same for one sentence. */
export function sendText(response: ServerResponse, body: string, type = 'text/plain'): void {
  const headers = {
    'content-type': `${type}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    // The address may have a ticket.
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
  sendBody(response, 200, headers, body);
}

/** Answers with a body that is in memory; who does not read it in time is cut off. */
export function sendBody(
  response: ServerResponse,
  status: number,
  headers: Record<string, string | number>,
  body: string | Buffer,
): void {
  boundReading(response, Buffer.byteLength(body));
  response.writeHead(status, headers).end(body);
}

/**
 * Answers a WebSocket upgrade with a plain HTTP response and closes the socket.
 * @param more headers beside those of every rejection
 */
export function rejectUpgrade(
  socket: Duplex,
  refusal: Rejection,
  more: Record<string, number>,
): void {
  const { status, headers, body } = render(refusal);
  const lines = headerLines({ ...headers, ...more, connection: 'close' });
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`);
  closeGracefully(socket);
}

/** Headers as they are sent, each with its line break. */
export function headerLines(headers: Record<string, string | number>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
}

function render(refusal: Rejection): {
  status: number;
  headers: Record<string, string | number>;
  body: string;
} {
  const body = JSON.stringify(problemBody(refusal));
  return {
    status: statusOf(refusal),
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...(refusal.retryAfterSeconds !== undefined && { 'retry-after': refusal.retryAfterSeconds }),
    },
    body,
  };
}
