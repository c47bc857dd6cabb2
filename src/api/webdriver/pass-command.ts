import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { reject, type ErrorName } from '#src/errors.ts';
import { parseForeignJson } from '#src/foreign/foreign-json.ts';
import { createGrowing } from '#src/foreign/growing.ts';
import { untilAborted } from '#src/objects/body.ts';
import { goneSignal } from '../http/client-gone.ts';
import { codingOf, Unreadable } from '../http/body-coding.ts';
import { allowSlowBody } from '../http/malformed-requests.ts';
import type { DriverCommand, Drivers } from './drivers.ts';
import { webDriverError, webDriverRejection, type WebDriverAnswer } from './webdriver-error.ts';

/** A gateway gives a command 330 s. */
export const COMMAND_MS = 335_000;
/** A body without a length is held in memory; files come with one, and may be larger. */
const UNSIZED_BYTES_MAX = 1024 * 1024;
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
    const body = await bodyOf(request, signal);
    if (body === null) return sendWebDriver(reply, tooLarge());
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

/** Null: it has no length and is too large. */
async function bodyOf(
  request: FastifyRequest,
  signal: AbortSignal,
): Promise<DriverCommand['body'] | null> {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  allowSlow(request.raw);
  const isSized = encoding === undefined && codingOf(request) === null;
  if (isSized) return { bytes: Number(length ?? 0), from: request.raw };
  const kept = createGrowing(UNSIZED_BYTES_MAX);
  // The stream of a request takes the connection with it when it is destroyed.
  const body = (request.body ?? request.raw) as Readable;
  const pieces = body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const piece of untilAborted(pieces, signal)) {
    if (kept.bytes() + piece.length > UNSIZED_BYTES_MAX) return null;
    kept.add(piece);
  }
  return { bytes: kept.bytes(), from: kept.all().toString('utf8') };
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

function tooLarge(): WebDriverAnswer {
  return webDriverRejection(reject('PAYLOAD_TOO_LARGE'));
}
