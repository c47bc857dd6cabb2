import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { errors, problemBody, type Rejected } from '#src/errors.ts';
import { endSoftly } from './connections/close-gracefully.ts';

export function statusOf(refusal: Rejected): number {
  return errors[refusal.rejected].status;
}

/** Answers an HTTP request in the API's error shape. */
export function refuseRequest(response: ServerResponse, refusal: Rejected): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, headers, body } = render(refusal);
  response.writeHead(status, headers).end(body);
}

/** Answers a WebSocket upgrade by a plain HTTP response, and ends the socket. */
export function refuseUpgrade(socket: Duplex, refusal: Rejected): void {
  const { status, headers, body } = render(refusal);
  const lines = Object.entries({ ...headers, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  endSoftly(socket);
}

function render(refusal: Rejected): {
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
