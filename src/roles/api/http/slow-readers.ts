import type { FastifyInstance } from 'fastify';
import type { ServerResponse } from 'node:http';
import { SLOWEST } from '#src/kernel/foreign/pace.ts';

/** The system takes shorter answers from this process at once. */
const SHORT_BYTES = 64 * 1024;

/**
 * Cuts off who reads an answer slower than it may: a picture, a list or a document is held in
 * memory until the system has all of it. Streams have bounds of their own.
 */
export function boundSlowReaders(server: FastifyInstance): void {
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (typeof payload === 'string' || Buffer.isBuffer(payload))
      boundReading(reply.raw, payload.length);
    done();
  });
}

/** @param bytes of the answer, which is about to be sent */
export function boundReading(
  response: Pick<ServerResponse, 'destroy' | 'once'>,
  bytes: number,
): void {
  if (bytes <= SHORT_BYTES) return;
  const ms = SLOWEST.creditMs + (bytes / SLOWEST.bytesPerSecond) * 1_000;
  const late = setTimeout(() => response.destroy(), ms).unref();
  const taken = () => clearTimeout(late);
  response.once('finish', taken);
  response.once('close', taken);
}
