import type { Screenshot } from '#src/kernel/messaging/screenshots.ts';

/** Pictures of the last second, in bounded memory. */
export type PictureCache = {
  get(key: string): Screenshot | null;
  put(key: string, picture: Screenshot): void;
  /** What is kept now. */
  size(): { pictures: number; bytes: number };
};

const PICTURES_MAX = 512;
const BYTES_MAX = 32 * 1024 ** 2;

/** Keeps each picture for `keepMs`; the oldest goes earlier if there are too many. */
export function createPictureCache(
  keepMs: number,
  { picturesMax = PICTURES_MAX, bytesMax = BYTES_MAX } = {},
): PictureCache {
  // The oldest comes first.
  const kept = new Map<string, { picture: Screenshot; timer: NodeJS.Timeout }>();
  let bytes = 0;

  function remove(key: string): void {
    const one = kept.get(key);
    if (one === undefined) return;
    clearTimeout(one.timer);
    kept.delete(key);
    bytes -= one.picture.bytes.length;
  }
  return {
    get: (key) => kept.get(key)?.picture ?? null,
    put(key, picture) {
      remove(key);
      kept.set(key, { picture, timer: setTimeout(() => remove(key), keepMs).unref() });
      bytes += picture.bytes.length;
      for (const oldest of kept.keys()) {
        if (kept.size <= picturesMax && bytes <= bytesMax) break;
        remove(oldest);
      }
    },
    size: () => ({ pictures: kept.size, bytes }),
  };
}
