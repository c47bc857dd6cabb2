import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createFairSlots } from '#src/kernel/async/fair-slots.ts';
import { isRejection, reject, type ErrorName, type Rejection } from '#src/kernel/errors.ts';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import { createGrowing } from '#src/kernel/foreign/growing.ts';
import { untilAborted } from '#src/kernel/objects/body.ts';
import { goneSignal } from '#src/roles/api/http/client-gone.ts';
import { codingOf, Unreadable } from '#src/roles/api/http/body-coding.ts';
import { allowSlowBody } from '#src/roles/api/http/malformed-requests.ts';
import type { DriverCommand, Drivers } from './drivers.ts';
import { BEGINNING_BYTES, hasChangedName, withKeptName } from './upload-name.ts';
import { webDriverError, webDriverRejection, type WebDriverAnswer } from './webdriver-error.ts';

/** A gateway gives a command 330 s. */
export const COMMAND_MS = 335_000;
/** A body without a length is held in memory; files come with one, and may be larger. */
const UNSIZED_BYTES_MAX = 1024 * 1024;
/** A gateway takes no more. */
const COMMAND_BYTES_MAX = 32 * 1024 * 1024;
const DROPPED_BYTES_MAX = 8 * COMMAND_BYTES_MAX;
const TOO_LARGE =
  'The body of a command may have 32 MiB. Put a larger file by ' +
  'PUT /api/sessions/{id}/files/{name}, and send the path that it answers as keys.';
const UNSIZED = {
  message: 'The body of a command in a coding, or without a Content-Length, may have 1 MiB.',
};
/** Each holds up to four times its body in memory. */
const renaming = createFairSlots({ slots: 2, slotsPerOwner: 1 });
const REFUSAL_BYTES_MAX = 64 * 1024;
/**
 * The longest silence in the middle of a body. While a person holds the session the gateway reads
 * nothing, so that nothing comes for as long.
 */
const SILENCE_MS = COMMAND_MS;

/** Passes a command to the driver by a gateway, and its answer back as it comes. */
export async function passCommand(
  drivers: Drivers,
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
    const body = await bodyOf(request, { isUpload: to.path.endsWith('/file'), signal });
    if (isRejection(body)) return sendWebDriver(reply, webDriverRejection(body));
    const { method } = request;
    const { response, isDrivers } = await drivers.send(to.driverUrl, {
      method,
      path: to.path,
      body,
      signal,
    });
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
    if (error instanceof Unreadable) throw error;
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
  // What of the body was not read is not read to its end either.
  if (!reply.request.raw.complete) void reply.header('connection', 'close');
  return reply.code(status).type('application/json; charset=utf-8').send(JSON.stringify(body));
}

/**
 * The body of a command, or why it is too large.
 * @param isUpload it is a file, whose name may have to be changed
 */
async function bodyOf(
  request: FastifyRequest,
  { isUpload, signal }: { isUpload: boolean; signal: AbortSignal },
): Promise<DriverCommand['body'] | Rejection> {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  allowSlow(request.raw);
  const isSized = encoding === undefined && codingOf(request) === null;
  const bytes = Number(length ?? 0);
  if (isSized && bytes > COMMAND_BYTES_MAX) return refuseUnread(piecesOf(request.raw, signal));
  if (isSized && isUpload && bytes > 0) return uploadOf(request, bytes, signal);
  if (isSized) return { bytes, from: request.raw };
  const kept = createGrowing(UNSIZED_BYTES_MAX);
  for await (const piece of piecesOf((request.body ?? request.raw) as Readable, signal)) {
    if (kept.bytes() + piece.length > UNSIZED_BYTES_MAX)
      return reject('PAYLOAD_TOO_LARGE', {}, UNSIZED);
    kept.add(piece);
  }
  return { bytes: kept.bytes(), from: kept.all().toString('utf8') };
}

/** The stream of a request takes the connection with it when it is destroyed: this does not. */
function piecesOf(body: Readable, signal: AbortSignal): AsyncIterable<Buffer> {
  const pieces = body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  return untilAborted(pieces, signal) as AsyncIterable<Buffer>;
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

/**
 * An upload as it arrives. Only one whose name chromedriver would change is held in memory, by one
 * caller of an organization at a time.
 */
async function uploadOf(
  { raw, caller }: FastifyRequest,
  bytes: number,
  signal: AbortSignal,
): Promise<DriverCommand['body']> {
  const arriving = piecesOf(raw, signal)[Symbol.asyncIterator]();
  let beginning: Buffer = Buffer.alloc(0);
  while (beginning.length < Math.min(BEGINNING_BYTES, bytes)) {
    const { done, value } = await arriving.next();
    if (done === true) break;
    beginning = Buffer.concat([beginning, value]);
  }
  async function* all() {
    yield beginning;
    yield* { [Symbol.asyncIterator]: () => arriving };
  }
  if (!hasChangedName(beginning))
    return { bytes, from: Readable.from(all(), { objectMode: false }) };
  const slot = await renaming.acquire(caller.organizationId);
  try {
    const kept = createGrowing(COMMAND_BYTES_MAX);
    for await (const piece of all()) kept.add(piece);
    const body = kept.all();
    const from = withKeptName(body) ?? body.toString('utf8');
    return { bytes: Buffer.byteLength(from), from };
  } finally {
    slot?.[Symbol.dispose]();
  }
}

/** A file of a slow client may take longer than other bodies. */
function allowSlow(request: IncomingMessage): void {
  const { socket } = request;
  allowSlowBody(request);
  const silent = () => socket.destroy();
  const arrived = (): void => {
    socket.off('timeout', silent);
    socket.setTimeout(0);
  };
  if (request.complete) return;
  socket.setTimeout(SILENCE_MS, silent);
  request.once('end', arrived);
  request.once('close', arrived);
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
