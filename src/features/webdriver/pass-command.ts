import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRejection, reject, type ErrorName, type Rejection } from '#src/kernel/errors.ts';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import { TooSlow } from '#src/roles/api/files/paced-body.ts';
import { goneSignal } from '#src/roles/api/http/client-gone.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import type { Transfers } from '#src/roles/api/http/transfers.ts';
import {
  allowSlow,
  brokenOff,
  holdBody,
  lengthOf,
  piecesOf,
  type HeldBounds,
} from './arriving-body.ts';
import { COMMAND_MS, type DriverAnswer, type DriverCommand, type Drivers } from './drivers.ts';
import { withKeptName } from './upload-name.ts';
import { webDriverError, webDriverRejection, type WebDriverAnswer } from './webdriver-error.ts';

/** A gateway takes no more. */
const COMMAND_BYTES_MAX = 32 * 1024 * 1024;
const DROPPED_BYTES_MAX = 8 * COMMAND_BYTES_MAX;
const TOO_LARGE =
  'The body of a command may have 32 MiB. Put a larger file by ' +
  'PUT /api/sessions/{id}/files/{name}, and send the path that it answers as keys.';
/** A body without a length is held in memory; files come with one, and may be larger. */
const UNSIZED: HeldBounds = {
  bytesMax: 1024 * 1024,
  tooLarge: 'The body of a command in a coding, or without a Content-Length, may have 1 MiB.',
};
const REFUSAL_BYTES_MAX = 64 * 1024;

/** What commands need beside their request. */
export type CommandDependencies = { drivers: Drivers; transfers: Transfers };

/** Passes a command to the driver by a gateway, and its answer back as it comes. */
export async function passCommand(
  parts: CommandDependencies,
  to: { driverUrl: string; path: string },
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), COMMAND_MS).unref();
  const gone = goneSignal(reply);
  const signal = AbortSignal.any([gone, late.signal]);
  if (gone.aborted) clearTimeout(timer);
  else gone.addEventListener('abort', () => clearTimeout(timer), { once: true });
  try {
    const answer = await sendCommand(parts, to, request, signal);
    if (isRejection(answer)) return refuseCommand(reply, answer);
    const { response, isDrivers } = answer;
    if (!isDrivers) {
      const { 'retry-after': retryAfter } = response.headers;
      if (retryAfter !== undefined) void reply.header('retry-after', retryAfter);
      return sendWebDriver(reply, refusalOf(await refusalText(response)));
    }
    const length = response.headers['content-length'];
    if (length !== undefined) void reply.header('content-length', length);
    return await reply
      .code(response.statusCode ?? 500)
      .type(response.headers['content-type'] ?? 'application/json; charset=utf-8')
      .send(response);
  } catch (error) {
    if (error instanceof TooSlow) return refuseCommand(reply, brokenOff(error));
    return sendWebDriver(
      reply,
      late.signal.aborted
        ? webDriverError('timeout', `The driver has not answered within ${COMMAND_MS / 1000} s.`)
        : webDriverError('unknown error', `No gateway answers: ${String(error)}`, { status: 502 }),
    );
  }
}

/** Answers in W3C's form. */
export function sendWebDriver(
  reply: FastifyReply,
  { status, body }: WebDriverAnswer,
): FastifyReply {
  closeUnread(reply);
  return reply.code(status).type('application/json; charset=utf-8').send(JSON.stringify(body));
}

/** Answers with a rejection of this service, in W3C's form. */
export function refuseCommand(reply: FastifyReply, rejection: Rejection): FastifyReply {
  closeUnread(reply);
  return sendRejection(reply, rejection);
}

/** What of the body was not read is not read to its end either. */
function closeUnread(reply: FastifyReply): void {
  if (!reply.request.raw.complete) void reply.header('connection', 'close');
}

/** Sends a command on as it arrives. What of it is in memory has a place until it is answered. */
export async function sendCommand(
  { drivers, transfers }: CommandDependencies,
  { driverUrl, path }: { driverUrl: string; path: string },
  request: FastifyRequest,
  signal: AbortSignal,
): Promise<DriverAnswer | Rejection> {
  const bytes = lengthOf(request);
  using taken = new DisposableStack();
  const send = (body: DriverCommand['body']) =>
    drivers.send(driverUrl, { method: request.method, path, body, signal });
  if (bytes === null) {
    const held = await holdBody(request, transfers, UNSIZED, signal);
    if (isRejection(held)) return held;
    taken.use(held);
    return await send({ bytes: held.bytes.length, from: held.bytes });
  }
  allowSlow(request.raw);
  if (bytes > COMMAND_BYTES_MAX) return refuseUnread(piecesOf(request.raw, signal));
  if (bytes === 0 || !path.endsWith('/file')) return await send({ bytes, from: request.raw });
  const place = await transfers.begin('upload', request.caller.organizationId);
  if (isRejection(place)) return place;
  taken.use(place);
  const file = withKeptName(piecesOf(request.raw, signal), bytes);
  return await send({ bytes, from: Readable.from(file, { objectMode: false }) });
}

/**
 * A client that is still sending when its connection is closed does not read the refusal: so it may
 * send for a while.
 */
async function refuseUnread(body: AsyncIterable<Buffer>): Promise<Rejection> {
  let dropped = 0;
  for await (const piece of body) {
    dropped += piece.length;
    if (dropped > DROPPED_BYTES_MAX) break;
  }
  return reject('PAYLOAD_TOO_LARGE', {}, { message: TOO_LARGE });
}

async function refusalText(response: IncomingMessage): Promise<string> {
  let text = '';
  response.setEncoding('utf8');
  for await (const piece of response as AsyncIterable<string>) {
    text += piece;
    if (text.length > REFUSAL_BYTES_MAX) break;
  }
  return text;
}

/** A gateway's refusal has the form of the API's. */
function refusalOf(text: string): WebDriverAnswer {
  const { error, message, context } = parseForeignJson(text, { bytesMax: REFUSAL_BYTES_MAX }) as {
    error: ErrorName;
    message: string;
    context: Record<string, unknown>;
  };
  return webDriverRejection(reject(error, context, { message }));
}
