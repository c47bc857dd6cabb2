/**
 * Where installed programs are kept: in the user's cache folder, for every checkout of this user.
 * What is there is run before it is used, and installed again if it does not run.
 */
import { accessSync, constants, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Where an installed program may be: in the cache folder, or in this checkout's `.tools`. */
export function toolFolders(root) {
  const cache = cacheFolder();
  const own = join(root, '.tools');
  return cache === null ? [own] : [cache, own];
}

/** Where to install: the first of them that can be written. */
export function toolFolder(root) {
  const folders = toolFolders(root);
  return folders.find(isWritable) ?? folders.at(-1);
}

/** The name of a program's folder: two machines may share a home, two checkouts want other versions. */
export function toolName(program, version) {
  return `${program}-${version}-${process.platform}-${process.arch}`;
}

/** By the XDG base directory specification; null: the user has no home. */
function cacheFolder() {
  const given = process.env.XDG_CACHE_HOME ?? '';
  try {
    const base = isAbsolute(given) ? given : join(homedir(), '.cache');
    return isAbsolute(base) ? join(base, 'browser-session-service') : null;
  } catch {
    return null;
  }
}

function isWritable(folder) {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
