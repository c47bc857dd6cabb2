import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { createPace, SLOWEST } from '#src/kernel/foreign/pace.ts';
import { untilAborted } from '#src/kernel/objects/body.ts';

/** The longest silence of a client in the middle of its upload. */
export const SENDS_NOTHING_MS = 30_000;
/** A client that takes nothing for so long is cut off. */
export const TAKES_NOTHING_MS = 60_000;

/** A client sends slower than it may. */
export class TooSlow extends Error {
  override readonly name = 'TooSlow';
  constructor() {
    const [silence, credit] = [SENDS_NOTHING_MS, SLOWEST.creditMs].map((ms) => ms / 1_000);
    const rate = `${SLOWEST.bytesPerSecond / 1024} KiB a second`;
    super(`The upload was silent for ${silence} s, or slower than ${rate} for ${credit} s.`);
  }
}

/**
 * The body of a request as it comes. It can be answered even where it does not come to its end.
 * @throws TooSlow; Error where the connection closes before the end
 */
export async function* arriving(body: Readable): AsyncGenerator<Buffer, void, void> {
  const slow = new AbortController();
  using pace = createPace(() => slow.abort(new TooSlow()), { silenceMs: SENDS_NOTHING_MS });
  // The stream of a request takes the connection with it when it is destroyed.
  const pieces = body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  pace.wait();
  for await (const piece of untilAborted(pieces, slow.signal) as AsyncIterable<Buffer>) {
    pace.passed(piece.length);
    yield piece;
    pace.wait();
  }
}

/**
 * Sends bytes as fast as the client takes them; one that is too slow is cut off.
 * @param place of the transfer; it is given back once the system has all bytes
 */
export function sendPaced(
  reply: FastifyReply,
  body: AsyncIterable<Uint8Array>,
  place: Disposable,
): FastifyReply {
  const { raw } = reply;
  const pace = createPace(() => raw.destroy());
  const over = (): void => {
    pace[Symbol.dispose]();
    place[Symbol.dispose]();
  };
  raw.once('finish', over);
  raw.once('close', over);
  if (raw.closed) over();
  raw.setTimeout(TAKES_NOTHING_MS, () => raw.destroy());
  async function* taken() {
    for await (const piece of body) {
      pace.wait();
      yield piece;
      pace.passed(piece.length);
    }
    // What is still on its way here.
    pace.wait();
  }
  return reply.send(Readable.from(taken(), { objectMode: false }));
}
