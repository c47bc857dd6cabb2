import { chunkSubject } from '#events/object-subjects.ts';
import { ObjectChanged } from '../object-store.ts';
import type { Head, ObjectRequests } from './requests.ts';

/** Chunks that are asked for before the reader pulls them: 1 MiB for each reader. */
const AHEAD = 4;

/**
 * The bytes of an object from one to before another, beginning with the chunk that has the first.
 * @throws ObjectChanged if a chunk is not there any more
 */
export async function* readChunks(
  requests: ObjectRequests,
  key: string,
  { put, chunks, chunkBytes, bytes }: Head,
  [start, end]: readonly [number, number],
): AsyncGenerator<Uint8Array, void, void> {
  if (start >= end) return;
  const last = Math.min(chunks - 1, Math.floor((end - 1) / chunkBytes));
  const coming: Promise<Uint8Array | null>[] = [];
  let next = Math.floor(start / chunkBytes);
  const askAhead = () => {
    for (; next <= last && coming.length < AHEAD; next += 1) {
      const asked = requests.chunk(chunkSubject(key, put, next));
      asked.catch(() => undefined); // it is awaited below, unless the reader has left
      coming.push(asked);
    }
  };
  for (let at = next; at <= last; at += 1) {
    askAhead();
    const chunk = await coming.shift();
    const begin = at * chunkBytes;
    if (chunk?.length !== Math.min(chunkBytes, bytes - begin)) throw new ObjectChanged(key);
    yield chunk.subarray(Math.max(0, start - begin), end - begin);
  }
}
