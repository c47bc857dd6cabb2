import { createHash } from 'node:crypto';
import { untilAborted, upTo } from './body.ts';
import { requireKey, requirePrefix, requireRange, withinObject } from './object-key.ts';
import {
  OBJECT_BYTES_MAX,
  ObjectStoreFull,
  type ObjectStore,
  type Freeing,
  type StoredObject,
} from './object-store.ts';

/** Pieces in which a body is read. */
const PIECE_BYTES = 64 * 1024;

/** Keeps objects in this process's memory, for tests. */
export function createMemoryObjectStore({
  maxBytes = Infinity,
  now = Date.now,
}: { maxBytes?: number; now?: () => number } = {}): ObjectStore {
  const objects = new Map<string, { object: StoredObject; data: Buffer }>();
  const usedBytes = () =>
    [...objects.values()].reduce((sum, { object: { bytes } }) => sum + bytes, 0);
  const keysUnder = (prefix: string) =>
    [...objects.keys()].filter((key) => key.startsWith(prefix)).toSorted();

  function remove(key: string, { freed }: Freeing = {}): boolean {
    const found = objects.get(key);
    if (found !== undefined) freed?.(found.object.bytes);
    return objects.delete(key);
  }

  return {
    putBytes: OBJECT_BYTES_MAX,
    async put(key, body, { signal, freed } = {}) {
      requireKey(key);
      const pieces: Buffer[] = [];
      let bytes = 0;
      for await (const piece of upTo(body, OBJECT_BYTES_MAX, signal)) {
        bytes += piece.length;
        if (usedBytes() + bytes > maxBytes) throw new ObjectStoreFull();
        pieces.push(Buffer.from(piece));
      }
      const data = Buffer.concat(pieces);
      const sha256 = createHash('sha256').update(data).digest('hex');
      const object = { key, bytes, sha256, storedAt: now() };
      const former = objects.get(key);
      objects.set(key, { object, data });
      if (former !== undefined) freed?.(former.object.bytes);
      return object;
    },
    async get(key, range, { signal } = {}) {
      requireKey(key);
      requireRange(range);
      const found = objects.get(key);
      if (found === undefined) return null;
      const [start, end] = withinObject(range, found.object.bytes);
      async function* pieces(data: Buffer) {
        for (let at = start; at < end; at += PIECE_BYTES)
          yield data.subarray(at, Math.min(at + PIECE_BYTES, end));
      }
      return { object: found.object, body: untilAborted(pieces(found.data), signal) };
    },
    async head(key) {
      requireKey(key);
      return objects.get(key)?.object ?? null;
    },
    async *list(prefix) {
      requirePrefix(prefix);
      for (const key of keysUnder(prefix)) {
        const found = objects.get(key);
        if (found !== undefined) yield found.object;
      }
    },
    async remove(key, options) {
      requireKey(key);
      remove(key, options);
    },
    async removeAll(prefix, options) {
      requirePrefix(prefix);
      return keysUnder(prefix).filter((key) => remove(key, options)).length;
    },
    use: async () => (maxBytes === Infinity ? null : { bytes: usedBytes(), maxBytes }),
    removeLeftovers: async () => 0,
    async [Symbol.asyncDispose]() {},
  };
}
