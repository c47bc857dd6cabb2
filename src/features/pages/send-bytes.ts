import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

/** Written at once; the rest waits until the client has read. */
const PIECE_BYTES = 64 * 1024;
/** A client that reads nothing for so long loses its connection. */
const SILENCE_MS = 30_000;
/** So does one that has not read all of it by then: 16 MiB at 1.1 Mbit/s. */
const READ_WITHIN_MS = 120_000;

/**
 * Sends bytes, and resolves once the client has read them or is gone: a slow client holds the bytes
 * in memory no longer than 120 s.
 */
export async function sendBytes(
  reply: FastifyReply,
  bytes: Buffer,
  { silenceMs = SILENCE_MS, withinMs = READ_WITHIN_MS } = {},
): Promise<void> {
  const { raw } = reply;
  const closed = Promise.withResolvers<void>();
  if (raw.closed) closed.resolve();
  else raw.once('close', closed.resolve);
  const cut = (): void => void raw.destroy();
  let silent = setTimeout(cut, silenceMs);
  const late = setTimeout(cut, withinMs);
  let at = 0;
  const source = new Readable({
    highWaterMark: PIECE_BYTES,
    read() {
      clearTimeout(silent);
      silent = setTimeout(cut, silenceMs);
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      at += piece.length;
      this.push(piece.length === 0 ? null : piece);
    },
  });
  try {
    void reply.header('content-length', bytes.length).send(source);
    await closed.promise;
  } finally {
    clearTimeout(silent);
    clearTimeout(late);
  }
}
