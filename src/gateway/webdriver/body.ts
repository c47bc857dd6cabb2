import type { IncomingMessage } from 'node:http';
import { reject, type Rejection } from '#src/errors.ts';

/** Of a command and of an answer: an uploaded file or a picture of a long page, in base64. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;

export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge';
}

/** The length of a command's body. The driver takes none without a length. */
export function lengthOf({ headers }: IncomingMessage): number | Rejection {
  if (headers['transfer-encoding'] !== undefined)
    return reject('INVALID_REQUEST', {}, { message: 'A command needs a Content-Length.' });
  const length = Number(headers['content-length'] ?? 0);
  return length <= BODY_BYTES_MAX ? length : reject('PAYLOAD_TOO_LARGE');
}

/** The bytes of a message. @throws BodyTooLarge once there are more than 32 MiB */
export async function* bounded(
  message: IncomingMessage,
  max = BODY_BYTES_MAX,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of message as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > max) throw new BodyTooLarge(`more than ${max} bytes`);
    yield piece;
  }
}

/** @throws BodyTooLarge */
export async function readBody(message: IncomingMessage, max: number): Promise<string> {
  const pieces = await Array.fromAsync(bounded(message, max));
  return Buffer.concat(pieces).toString('utf8');
}
