import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { problemBody } from '#src/kernel/errors.ts';
import { allowanceHeaders, type CountByAddress } from './admission.ts';
import { sendRejection, type CountRefusal } from './error-response.ts';
import { invalid } from './validation.ts';

/**
 * Room for a credential of 64 KiB, which is refused as a credential; a longer one is refused as a
 * request.
 */
const HEADER_BYTES_MAX = 80 * 1024;

/** A request that has not arrived completely by then is refused. */
const ARRIVES_WITHIN_MS = 10_000;

const MESSAGES: Record<string, string> = {
  HPE_HEADER_OVERFLOW: `The request's line and headers are longer than ${HEADER_BYTES_MAX} bytes.`,
  ERR_HTTP_REQUEST_TIMEOUT: 'The request has not arrived whole in time.',
};

/** Connections on which the body of this request may take longer to arrive. */
const slow = new WeakMap<Socket, IncomingMessage>();

/**
 * Lets the body of this request take longer than others. The caller bounds the time between two
 * pieces.
 */
export function allowSlowBody(request: IncomingMessage): void {
  const { socket } = request;
  slow.set(socket, request);
  // A further request may have begun on the connection before this one is read to its end.
  const arrived = () => slow.get(socket) === request && slow.delete(socket);
  request.once('end', arrived);
  request.once('close', arrived);
}

/**
 * Answers input that never becomes a request: bytes that are not HTTP, and paths that are not text.
 * The answers are like all others: same body, same headers, counted by address.
 */
export function brokenHttpAnswers(
  countByAddress: CountByAddress,
  countRefusal: CountRefusal = () => undefined,
) {
  function onSocket(error: Error & { code?: string }, socket: Socket): void {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && slow.has(socket)) return;
    // Browsers open connections ahead: an answer to nothing would be taken for that of the next
    // request, and a closed connection is opened again.
    const isUnused = socket.bytesRead === 0;
    if (error.code === 'ECONNRESET' || !socket.writable || isUnused) return void socket.destroy();
    refuseOn(socket, MESSAGES[error.code ?? ''] ?? 'This is no valid HTTP request.');
  }
  function refuseOn(
    socket: Duplex & { remoteAddress?: string | undefined },
    message: string,
  ): void {
    countRefusal('INVALID_REQUEST');
    const body = JSON.stringify(problemBody(invalid({}, message)));
    const headers = {
      ...allowanceHeaders(countByAddress(socket.remoteAddress ?? '')),
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    socket.end(['HTTP/1.1 400 Bad Request', ...lines, '', body].join('\r\n'));
  }
  function onPath(_: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
    void reply.headers(allowanceHeaders(countByAddress(request.ip), request));
    sendRejection(reply, invalid({}, 'The path is no valid text.'));
  }
  /** Without a listener Node closes a CONNECT's connection without an answer. */
  function onConnect(_: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => undefined);
    refuseOn(socket, 'There is no tunnel here.');
  }
  const options = {
    requestTimeout: ARRIVES_WITHIN_MS,
    clientErrorHandler: onSocket,
    frameworkErrors: onPath,
    http: {
      // Otherwise Node answers that itself, with an empty body: see refuseWithoutHost.
      requireHostHeader: false,
      maxHeaderSize: HEADER_BYTES_MAX,
      // Otherwise a request that never arrives completely is noticed up to half a minute late.
      connectionsCheckingInterval: 2_000,
      // If this is longer than the time-out of a whole request, Node mistakes one for the other.
      headersTimeout: ARRIVES_WITHIN_MS,
    },
  };
  return { options, onConnect };
}

/** A hook: HTTP/1.1 requires a Host header, and a 400 for a request without one. */
export function refuseWithoutHost(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  done: () => void,
): void {
  if (raw.headers.host !== undefined || raw.httpVersion !== '1.1') done();
  else sendRejection(reply, invalid({}, 'The Host header is missing.'));
}
