import type { FastifyInstance } from 'fastify';
import { boundReading } from '#src/kernel/http/bound-reading.ts';

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
