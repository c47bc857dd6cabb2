import type { IncomingMessage } from 'node:http';
import { reject, type Rejection } from '#src/kernel/errors.ts';

/** Of a command and of an answer: an uploaded file or a picture of a long page, in base64. */
export const BODY_BYTES_MAX = 32 * 1024 * 1024;

export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge';
}

/** The refusal of what is larger, with the bound and the way out. */
export function tooLarge(): Rejection {
  const message =
    'A command and its answer may have 32 MiB. Put a larger file by ' +
    'PUT /api/sessions/{id}/files/{name}, and send the path that it answers as keys.';
  return reject('PAYLOAD_TOO_LARGE', {}, { message });
}

/** The length of a command's body. The driver takes none without a length. */
export function lengthOf({ headers }: IncomingMessage): number | Rejection {
  if (headers['transfer-encoding'] !== undefined)
    return reject('INVALID_REQUEST', {}, { message: 'A command needs a Content-Length.' });
  const length = Number(headers['content-length'] ?? 0);
  return length <= BODY_BYTES_MAX ? length : tooLarge();
}

/** The bytes of a message. @throws BodyTooLarge once there are more than 32 MiB */
export async function* bounded(
  message: AsyncIterable<Buffer>,
  max = BODY_BYTES_MAX,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of message) {
    bytes += piece.length;
    if (bytes > max) throw new BodyTooLarge(`more than ${max} bytes`);
    yield piece;
  }
}

/**
 * The body of a request as it comes. A client that is silent for so many ms while more is awaited
 * loses its connection; the time in which nothing is read is no silence.
 * @throws Error where the connection closes before
 */
export async function* unlessSilent(
  request: IncomingMessage,
  silentMs: number,
): AsyncGenerator<Buffer> {
  const silence = () => setTimeout(() => request.socket.destroy(), silentMs);
  let timer = silence();
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      clearTimeout(timer);
      yield piece;
      timer = silence();
    }
  } finally {
    clearTimeout(timer);
  }
}

/** @throws BodyTooLarge */
export async function readBody(message: AsyncIterable<Buffer>, max: number): Promise<string> {
  const pieces = await Array.fromAsync(bounded(message, max));
  return Buffer.concat(pieces).toString('utf8');
}
