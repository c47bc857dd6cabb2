import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { DOWNLOADS_FOLDER } from '#src/browser-link/downloads-folder.ts';

/** What each file or folder takes at least, also an empty one: its inode. */
const ENTRY_BYTES = 1_024;
const BLOCK_BYTES = 512;

/**
 * What a browser's folder takes on its disk, but for the downloads, which have a bound of their
 * own. Files that vanish meanwhile count nothing; no link is followed.
 */
export async function folderBytes(folder: string, isTop = true): Promise<number> {
  let bytes = 0;
  try {
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      if (isTop && entry.name === DOWNLOADS_FOLDER) continue;
      bytes += entry.isDirectory()
        ? ENTRY_BYTES + (await folderBytes(path, false))
        : Math.max(ENTRY_BYTES, await blocksOf(path));
    }
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  return bytes;
}

async function blocksOf(path: string): Promise<number> {
  try {
    return (await lstat(path)).blocks * BLOCK_BYTES;
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
