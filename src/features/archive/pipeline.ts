/**
 * Runs a step on each value, up to `limit` at once, and yields the results in order. Steps that
 * were begun are waited for when the consumer stops.
 */
export async function* ahead<T, R>(
  values: AsyncIterable<T>,
  limit: number,
  step: (value: T) => Promise<R>,
): AsyncGenerator<R, void, void> {
  const begun: Promise<R>[] = [];
  try {
    for await (const value of values) {
      const result = step(value);
      // A failure is reported when its turn comes.
      result.catch(() => undefined);
      begun.push(result);
      if (begun.length >= limit) yield await (begun.shift() as Promise<R>);
    }
    while (begun.length > 0) yield await (begun.shift() as Promise<R>);
  } finally {
    await Promise.allSettled(begun);
  }
}

/** Cuts a stream of bytes into pieces of the given lengths; the last may end early. */
export async function* cut(
  stream: AsyncIterable<Buffer>,
  lengths: Iterable<number>,
): AsyncGenerator<Buffer, void, void> {
  const wanted = lengths[Symbol.iterator]();
  let rest: Buffer[] = [];
  let bytes = 0;
  let next = wanted.next();
  for await (const chunk of stream) {
    rest.push(chunk);
    bytes += chunk.length;
    while (next.done !== true && bytes >= next.value) {
      const all = Buffer.concat(rest);
      yield all.subarray(0, next.value);
      bytes -= next.value;
      rest = [all.subarray(next.value)];
      next = wanted.next();
    }
  }
  if (bytes > 0) yield Buffer.concat(rest);
}
