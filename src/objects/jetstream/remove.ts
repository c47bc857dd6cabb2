import { ALL_CHUNKS, chunksFilter, headSubject, putOfChunk } from '#events/object-subjects.ts';
import { beginOfPut } from '../put-id.ts';
import type { ObjectRequests } from './requests.ts';

/** Objects that are removed at once. */
const AT_ONCE = 8;

/** Removes the head, then the chunks that it named; false if there was none. */
export async function removeObject(requests: ObjectRequests, key: string): Promise<boolean> {
  const head = await requests.head(key);
  if (head === null) return false;
  // Up to this head: a put may have replaced it meanwhile.
  const purged = await requests.purge(headSubject(key), head.sequence + 1);
  if (head.chunks > 0) await requests.purge(chunksFilter(key, head.put));
  return purged > 0;
}

/**
 * Removes each object under the prefix, and returns how many there were. One purge of all chunks
 * would take those of puts that are not done, too, and leave their objects without bytes.
 */
export async function removeObjects(requests: ObjectRequests, prefix: string): Promise<number> {
  const keys = await requests.keysUnder(prefix);
  let removed = 0;
  for (let at = 0; at < keys.length; at += AT_ONCE) {
    const some = keys.slice(at, at + AT_ONCE).map((key) => removeObject(requests, key));
    removed += (await Promise.all(some)).filter((wasThere) => wasThere).length;
  }
  return removed;
}

/** Removes the chunks of puts that began before a time and are named by no head. */
export async function removeLeftovers(requests: ObjectRequests, before: number): Promise<number> {
  const puts = new Map<string, { key: string; put: string }>();
  for (const subject of await requests.subjects(ALL_CHUNKS)) {
    const of = putOfChunk(subject);
    const begunAt = beginOfPut(of.put);
    if (begunAt !== null && begunAt < before) puts.set(`${of.key} ${of.put}`, of);
  }
  let removed = 0;
  for (const { key, put } of puts.values()) {
    // No head will name it any more: its put has ended or is older than puts may become.
    if ((await requests.head(key))?.put === put) continue;
    await requests.purge(chunksFilter(key, put));
    removed += 1;
  }
  return removed;
}
