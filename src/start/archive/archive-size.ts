import type { OpenArchive } from '#src/features/archive/open-once.ts';

/** An archive grows once in many hours; its files are not listed more often than this. */
const REFRESH_MS = 5 * 60_000;

/** Reads the size of the archive, of its manifests; it is opened at the first call. */
export function createArchiveSize(
  open: OpenArchive,
  now: () => number,
): () => Promise<{ bytes: number; events: number }> {
  let refreshedAt = -Infinity;
  return async () => {
    const archive = await open();
    if (now() - refreshedAt >= REFRESH_MS) {
      await archive.refresh();
      refreshedAt = now();
    }
    const [size, segments] = [{ bytes: 0, events: 0 }, archive.segments()];
    for (const { bytes, records } of segments) {
      size.bytes += bytes;
      size.events += records;
    }
    return size;
  };
}
