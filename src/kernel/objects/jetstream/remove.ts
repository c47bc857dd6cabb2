import {
  ALL_CHUNKS,
  chunksFilter,
  chunkSubject,
  headSubject,
  putOfChunk,
} from '#events/object-subjects.ts';
import type { Freeing } from '../object-store.ts';
import { beginOfPut } from '../put-id.ts';
import type { ObjectRequests } from './requests.ts';

/** Objects that are removed at once. */
const AT_ONCE = 8;

/** Removes the head, then the chunks that it named; false if there was none. */
export async function removeObject(
  requests: ObjectRequests,
  key: string,
  { freed }: Freeing = {},
): Promise<boolean> {
  const head = await requests.head(key);
  if (head === null) return false;
  // Up to this head: a put may have replaced it meanwhile.
  const purged = await requests.purge(headSubject(key), head.sequence + 1);
  if (head.chunks > 0) await requests.purge(chunksFilter(key, head.put));
  if (purged > 0) freed?.(head.bytes);
  return purged > 0;
}

/**
 * Removes each object under the prefix, and returns how many there were. One purge of all chunks
 * would take those of puts that are not done, too, and leave their objects without bytes.
 */
export async function removeObjects(
  requests: ObjectRequests,
  prefix: string,
  options?: Freeing,
): Promise<number> {
  const keys = await requests.keysUnder(prefix);
  let removed = 0;
  for (let at = 0; at < keys.length; at += AT_ONCE) {
    const some = keys.slice(at, at + AT_ONCE).map((key) => removeObject(requests, key, options));
    removed += (await Promise.all(some)).filter((wasThere) => wasThere).length;
  }
  return removed;
}

/**
 * Removes the chunks of puts whose lease is over and that are named by no head. The lease runs from
 * the newest chunk, by the server's clock alone: that of who stored it may be another one.
 */
export async function removeLeftovers(
  requests: ObjectRequests,
  { now, leaseMs }: { now: () => number; leaseMs: number },
): Promise<number> {
  const puts = new Map<string, { key: string; put: string; last: number }>();
  for (const subject of await requests.subjects(ALL_CHUNKS)) {
    const { key, put } = putOfChunk(subject);
    const begunAt = beginOfPut(put);
    // What began a moment ago is left out, so that a sweep asks for few.
    if (begunAt === null || begunAt >= now() - leaseMs) continue;
    const chunk = Number(subject.slice(subject.lastIndexOf('.') + 1));
    const last = Math.max(chunk, puts.get(`${key} ${put}`)?.last ?? 0);
    puts.set(`${key} ${put}`, { key, put, last });
  }
  let removed = 0;
  for (const { key, put, last } of puts.values()) {
    if ((await requests.head(key))?.put === put) continue;
    const ageMs = await requests.ageMs(chunkSubject(key, put, last));
    if (ageMs !== null && ageMs < leaseMs) continue;
    // The put may have written its head meanwhile: without its lease it writes none from here on.
    if ((await requests.head(key))?.put === put) continue;
    await requests.purge(chunksFilter(key, put));
    removed += 1;
  }
  return removed;
}
