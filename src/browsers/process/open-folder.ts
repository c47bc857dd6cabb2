import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/**
 * Opens a folder below one that the browser's user owns, and may have replaced by a link to another
 * place: what this process, which may be root, then does by `at` is done in the folder itself.
 * @param path to a folder of this process's own, or `at` of an opened one, and one name below it
 * @throws Error with the code ELOOP or ENOTDIR if a link is in its place
 */
export function openFolder(path: string): Promise<FileHandle> {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/** The path of what has that name in an opened folder, wherever the folder is by now. */
export function at(folder: FileHandle, name: string): string {
  return `/proc/self/fd/${folder.fd}/${name}`;
}
