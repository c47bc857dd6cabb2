import { constants } from 'node:fs';
import { chown, mkdir, open, rename, rm, symlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { DOWNLOADS_FOLDER } from '#src/browsers/link/downloads-folder.ts';
import { FolderGone, type BrowserFolders } from '../browsers.ts';
import { at, openFolder } from './open-folder.ts';
import type { BrowserUser } from './programs.ts';

/** A file that is being written; no file of a session has this name. */
const PART = '.part';
/** Bytes that are read at a time. */
const PIECE_BYTES = 256 * 1024;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/**
 * The folders of process browsers, on the host's file system. The browser's user owns them and may
 * put links there, in place of a folder too: each folder on the way is opened without following
 * one, and what is done in the last is done by its descriptor.
 * @param folderOf the browser's own folder; null: the browser is not there
 */
export function createProcessFolders(
  folderOf: (workloadId: string) => string | null,
  user: BrowserUser,
): BrowserFolders {
  function folder(workloadId: string): string {
    const found = folderOf(workloadId);
    if (found === null) throw new FolderGone(`browser ${workloadId} is gone`);
    return found;
  }
  /** Opens the downloads folder. @throws Error if a link is in its place or in its folder's */
  async function downloadsOf(workloadId: string): Promise<FileHandle> {
    await using own = await openFolder(folder(workloadId));
    return await openFolder(at(own, DOWNLOADS_FOLDER));
  }
  return {
    path: (workloadId, name) => join(folder(workloadId), DOWNLOADS_FOLDER, name),
    async read(workloadId, name, signal) {
      const downloads = await orNull(downloadsOf(workloadId));
      if (downloads === null) return null;
      await using _ = downloads;
      // A pipe would block the opening until somebody writes.
      const file = await orNull(open(at(downloads, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
      if (file === null) return null;
      const stat = await file.stat();
      // A file of somebody else may be a second name of one that the user cannot read.
      if (!stat.isFile() || (user !== undefined && stat.uid !== user.uid)) {
        await file.close();
        return null;
      }
      return {
        bytes: stat.size,
        body: bytesOf(file, stat.size, signal),
        [Symbol.asyncDispose]: () => file.close(),
      };
    },
    async write(workloadId, name, { body }, signal) {
      await using downloads = await downloadsOf(workloadId);
      const part = at(downloads, `${name.slice(0, 16)}${PART}${process.hrtime.bigint()}`);
      const file = await open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      try {
        for await (const piece of body) {
          signal.throwIfAborted();
          await file.write(piece);
        }
        if (user !== undefined) await file.chown(user.uid, user.gid);
        await rename(part, at(downloads, name));
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      } finally {
        await file.close();
      }
    },
    async rename(workloadId, from, to) {
      const downloads = await orNull(downloadsOf(workloadId));
      if (downloads === null) return false;
      await using _ = downloads;
      const moved = rename(at(downloads, from), at(downloads, to));
      return (await orNull(moved.then(() => true))) ?? false;
    },
    async remove(workloadId, name) {
      const downloads = await orNull(downloadsOf(workloadId));
      if (downloads === null) return;
      await using _ = downloads;
      await rm(at(downloads, name), { force: true });
    },
  };
}

/** Makes the downloads folder in a browser's own folder, before its user can enter that. */
export async function makeDownloadsFolder(folder: string, user: BrowserUser): Promise<void> {
  const path = join(folder, DOWNLOADS_FOLDER);
  await mkdir(path, { mode: 0o700 });
  if (user !== undefined) await chown(path, user.uid, user.gid);
  // Where Chromium saves what no CDP command tells it to save elsewhere.
  await symlink(DOWNLOADS_FOLDER, join(folder, 'Downloads'));
}

/** At most `bytes` of them: a file that still grows would have no end. */
async function* bytesOf(file: FileHandle, bytes: number, signal: AbortSignal) {
  for (let at = 0; at < bytes;) {
    signal.throwIfAborted();
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, bytes - at));
    const { bytesRead } = await file.read(piece, 0, piece.length, at);
    if (bytesRead === 0) throw new Error('the file became shorter while it was read');
    at += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}

/** Null: there is no such file or folder, or a link is in its place. */
async function orNull<Result>(work: Promise<Result>): Promise<Result | null> {
  try {
    return await work;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ELOOP', 'ENOTDIR', 'ENXIO'].includes(code ?? '')) return null;
    throw error;
  }
}
