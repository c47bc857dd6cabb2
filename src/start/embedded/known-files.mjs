/**
 * What was found out from the contents of files, kept for as long as they stay as they are: to read
 * and hash all sources takes a call of `bss` 80 ms of processor time, to ask for their states 15 ms.
 */
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** File systems count the times of changes in up to 2 s. */
const SETTLED_MS = 3_000;

/**
 * The value for these files: the kept one if the state of each is the same, else found anew.
 *
 * A file's state is its inode, its size, and the times in nanoseconds of the last change of its
 * content (mtime) and of anything (ctime). Size and mtime alone would not do: git keeps a size by
 * chance, and a program sets mtime as it likes. No program sets ctime: the kernel does, from its
 * clock, at each write, rename and link. Two changes within one count of that clock have one time, so
 * nothing is kept of files that have changed a moment ago.
 * @param name of the file in `.tools` that keeps it; where it cannot be written nothing is kept
 * @param files their names below `root`; one that is missing has a state, too
 * @param find returns the value, a text; null is not kept
 */
export function knownOf(root, { name, files }, find) {
  const place = join(root, '.tools', `${name}.known`);
  const { state, isSettled } = stateOf(root, files);
  const kept = read(place);
  if (kept?.state === state) return kept.value;
  const value = find();
  if (value !== null && isSettled) keep(place, { state, value });
  return value;
}

function stateOf(root, files) {
  // Two machines may have the same folder.
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}\n`);
  let changedAt = 0;
  for (const file of files) {
    const found = statSync(join(root, file), { bigint: true, throwIfNoEntry: false });
    hash.update(`${file}\0`);
    if (found === undefined) continue;
    hash.update(`${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}\n`);
    changedAt = Math.max(changedAt, Number(found.ctimeMs));
  }
  return { state: hash.digest('hex'), isSettled: changedAt < Date.now() - SETTLED_MS };
}

function read(place) {
  try {
    return JSON.parse(readFileSync(place, 'utf8'));
  } catch {
    return null; // Not there, or of a process that was killed.
  }
}

/** By a name of its own: two processes may do so at once. */
function keep(place, known) {
  const fresh = `${place}.${process.pid}`;
  try {
    writeFileSync(fresh, JSON.stringify(known));
    renameSync(fresh, place);
  } catch {
    // The next process finds the value anew.
    rmSync(fresh, { force: true });
  }
}
