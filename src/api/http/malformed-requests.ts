import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { problemBody, reject } from '#src/errors.ts';
import { allowanceHeaders, type CountByAddress } from './admission.ts';
import { refuse, type CountRefusal } from './error-response.ts';

/** Room for a credential of 64 KiB, which is refused as one; what is longer is no request. */
const HEADER_BYTES_MAX = 80 * 1024;

/** A request that has not arrived whole by then is refused. */
const ARRIVES_WITHIN_MS = 10_000;

const MESSAGES: Record<string, string> = {
  HPE_HEADER_OVERFLOW: `The request's line and headers are longer than ${HEADER_BYTES_MAX} bytes.`,
  ERR_HTTP_REQUEST_TIMEOUT: 'The request has not arrived whole in time.',
};

/**
 * Answers to what never becomes a request: bytes that are no HTTP, and paths that are no text. They
 * are like all others: same body, same headers, counted by address.
 */
export function brokenHttpAnswers(
  countByAddress: CountByAddress,
  countRefusal: CountRefusal = () => undefined,
) {
  function onSocket(error: Error & { code?: string }, socket: Socket): void {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    refuseOn(socket, MESSAGES[error.code ?? ''] ?? 'This is no valid HTTP request.');
  }
  function refuseOn(
    socket: Duplex & { remoteAddress?: string | undefined },
    message: string,
  ): void {
    countRefusal('INVALID_REQUEST');
    const body = JSON.stringify(problemBody(invalid(message)));
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
    void reply.headers(allowanceHeaders(countByAddress(request.ip)));
    refuse(reply, invalid('The path is no valid text.'));
  }
  /** A CONNECT would be cut without a word. */
  function onConnect(_: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => undefined);
    refuseOn(socket, 'There is no tunnel here.');
  }
  const options = {
    requestTimeout: ARRIVES_WITHIN_MS,
    clientErrorHandler: onSocket,
    frameworkErrors: onPath,
    http: {
      // Else Node answers that itself, with nothing in it: see refuseWithoutHost.
      requireHostHeader: false,
      maxHeaderSize: HEADER_BYTES_MAX,
      // Else a request that never arrives whole is noticed up to half a minute late.
      connectionsCheckingInterval: 1_000,
      // Where this is longer than what a whole request may take, Node takes one for the other.
      headersTimeout: ARRIVES_WITHIN_MS,
    },
  };
  return { options, onConnect };
}

/** A hook: HTTP/1.1 asks for a Host header, and for a 400 where there is none. */
export function refuseWithoutHost(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  done: () => void,
): void {
  if (raw.headers.host !== undefined || raw.httpVersion !== '1.1') done();
  else refuse(reply, invalid('The Host header is missing.'));
}

function invalid(message: string) {
  return reject('INVALID_REQUEST', {}, { message });
}
