import type { FastifyReply } from 'fastify';

/** Aborts when the connection of the answer closes: at its end, or because the client left. */
export function goneSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (raw.closed) gone.abort();
  else raw.once('close', () => gone.abort());
  return gone.signal;
}
