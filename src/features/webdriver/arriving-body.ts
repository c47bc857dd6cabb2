import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { createGrowing } from '#src/kernel/foreign/growing.ts';
import { untilAborted } from '#src/kernel/objects/body.ts';
import { arriving, TooSlow } from '#src/roles/api/files/paced-body.ts';
import { codingOf, Unreadable } from '#src/roles/api/http/body-coding.ts';
import { allowSlowBody } from '#src/roles/api/http/malformed-requests.ts';
import type { Transfers } from '#src/roles/api/http/transfers.ts';
import { invalid } from '#src/roles/api/http/validation.ts';
import { COMMAND_MS } from './drivers.ts';

/** A body in memory; disposing gives its place back. */
export type HeldBody = { bytes: Buffer } & Disposable;

/** How much of a body may be held, and what is said of more. */
export type HeldBounds = { bytesMax: number; tooLarge: string };

/** As of the bodies of other routes, which have no places either. */
const SMALL_BYTES = 64 * 1024;

/** The length of a body; null: it is not known before it has arrived, or been decoded. */
export function lengthOf(request: FastifyRequest): number | null {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  return encoding === undefined && codingOf(request) === null ? Number(length ?? 0) : null;
}

/**
 * Reads a body into memory, in a place of the process unless it is small. It may be as slow as an
 * upload.
 * @returns also why it is refused: it is too large, too slow, broken off or not readable, or has no
 * place in time
 */
export async function holdBody(
  request: FastifyRequest,
  transfers: Transfers,
  { bytesMax, tooLarge }: HeldBounds,
  signal?: AbortSignal,
): Promise<HeldBody | Rejection> {
  const length = lengthOf(request);
  const excess = () => reject('PAYLOAD_TOO_LARGE', {}, { message: tooLarge });
  if (length !== null && length > bytesMax) return excess();
  using taken = new DisposableStack();
  if (length === null || length > SMALL_BYTES) {
    allowSlow(request.raw);
    const place = await transfers.begin('command', request.caller.organizationId);
    if (isRejection(place)) return place;
    taken.use(place);
  }
  const kept = createGrowing(bytesMax);
  try {
    for await (const piece of piecesOf((request.body ?? request.raw) as Readable, signal)) {
      if (kept.bytes() + piece.length > bytesMax) return excess();
      kept.add(piece);
    }
  } catch (error) {
    return error instanceof Unreadable ? error.rejection : brokenOff(error);
  }
  const place = taken.move();
  return { bytes: kept.all(), [Symbol.dispose]: () => place[Symbol.dispose]() };
}

/** The refusal of a body of which not all has come. */
export function brokenOff(error: unknown): Rejection {
  const message = error instanceof TooSlow ? error.message : 'The body has not arrived whole.';
  return invalid({}, message);
}

/**
 * The body of a request as it comes; the client may be as slow as with an upload.
 * @throws TooSlow; Error where it breaks off, or the signal aborts
 */
export function piecesOf(body: Readable, signal?: AbortSignal): AsyncIterable<Buffer> {
  return untilAborted(arriving(body), signal) as AsyncIterable<Buffer>;
}

/**
 * The longest silence in the middle of a body. While a person holds the session the gateway reads
 * nothing, so that nothing comes for as long as a command may take.
 */
const SILENCE_MS = COMMAND_MS;

/** A file of a slow client may take longer than other bodies. */
export function allowSlow(request: IncomingMessage): void {
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
