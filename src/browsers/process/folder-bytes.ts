import { lstat, opendir } from 'node:fs/promises';
import { DOWNLOADS_FOLDER } from '#src/browsers/link/downloads-folder.ts';
import { at, openFolder } from './open-folder.ts';

/** What each file or folder takes at least, also an empty one: its inode. */
const ENTRY_BYTES = 1_024;
const BLOCK_BYTES = 512;
/** Chromium's are some 10 deep. Each folder on the way is open meanwhile. */
const DEPTH_MAX = 64;
/** What is below them counts as more than any browser may have. */
const TOO_DEEP_BYTES = 2 ** 50;

/**
 * What a browser's folder takes on its disk, but for the downloads, which have a bound of their
 * own. Files that vanish meanwhile count nothing; no link is followed, also not one that takes a
 * folder's place meanwhile.
 */
export async function folderBytes(path: string, depth = 0): Promise<number> {
  if (depth > DEPTH_MAX) return TOO_DEEP_BYTES;
  let bytes = 0;
  try {
    await using folder = await openFolder(path);
    for await (const entry of await opendir(at(folder, ''))) {
      const inside = at(folder, entry.name);
      if (depth === 0 && entry.name === DOWNLOADS_FOLDER) continue;
      bytes += entry.isDirectory()
        ? ENTRY_BYTES + (await folderBytes(inside, depth + 1))
        : Math.max(ENTRY_BYTES, await blocksOf(inside));
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

/** Gone, or no folder any more. */
function isGone(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(code);
}
