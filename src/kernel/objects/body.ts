/** The streams of bytes that are put into an object store. */

/**
 * The same bytes until the signal aborts; then its reason is thrown, even while the source is
 * silent. The source is closed when it is no longer read, and is not waited for.
 */
export async function* untilAborted(
  body: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, void> {
  signal?.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  aborted.catch(() => undefined);
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  const source = body[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      const { done, value } = await Promise.race([source.next(), aborted]);
      isOver = done === true;
      if (isOver) return;
      yield value;
    }
  } catch (error) {
    isOver = !(signal?.aborted ?? false);
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
    if (!isOver) source.return?.().catch(() => undefined);
  }
}

/** The same, of at most so many bytes. @throws RangeError behind them */
export async function* upTo(
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, void> {
  let bytes = 0;
  for await (const piece of untilAborted(body, signal)) {
    bytes += piece.length;
    if (bytes > bytesMax) throw new RangeError(`an object of more than ${bytesMax} bytes`);
    yield piece;
  }
}

/** The same bytes in pieces of one size, the last one of the rest; each is the caller's to keep. */
export async function* inChunks(
  body: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Buffer, void, void> {
  let chunk = Buffer.allocUnsafe(size);
  let filled = 0;
  for await (const piece of body)
    for (let at = 0; at < piece.length;) {
      const taken = piece.subarray(at, at + size - filled);
      chunk.set(taken, filled);
      filled += taken.length;
      at += taken.length;
      if (filled < size) continue;
      yield chunk;
      chunk = Buffer.allocUnsafe(size);
      filled = 0;
    }
  if (filled > 0) yield chunk.subarray(0, filled);
}
