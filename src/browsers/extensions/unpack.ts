import { chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { readFiles, type ExtensionFile } from '#src/browsers/extensions/zip.ts';
import type { ExtensionSource } from './extension-source.ts';

const FOLDER_MODE = 0o755;
const FILE_MODE = 0o644;

/** A folder has no file; it comes before what is in it. */
type UnpackedEntry = { path: string; file: Pick<ExtensionFile, 'bytes' | 'content'> | null };

/** Extensions unpacked, each in a folder of its id. A piece of a file is in memory at a time. */
async function* unpack(
  extensions: readonly ExtensionSource[],
): AsyncGenerator<UnpackedEntry, void, void> {
  const folders = new Set<string>();
  for (const extension of extensions)
    for await (const file of readFiles(await extension.zip())) {
      const segments = `${extension.id}/${file.path}`.split('/');
      for (let depth = 1; depth < segments.length; depth += 1) {
        const folder = segments.slice(0, depth).join('/');
        if (!folders.has(folder)) yield { path: folder, file: null };
        folders.add(folder);
      }
      yield { path: segments.join('/'), file };
    }
}

/**
 * Unpacks extensions into a folder, which is made.
 * @param owner of all of it; undefined: the user of this process
 * @throws BadExtension; the signal's reason
 */
export async function unpackInto(
  folder: string,
  extensions: readonly ExtensionSource[],
  { owner, signal }: { owner: { uid: number; gid: number } | undefined; signal: AbortSignal },
): Promise<void> {
  const own = async (path: string) => {
    if (owner !== undefined) await chown(path, owner.uid, owner.gid);
  };
  await mkdir(folder, { mode: FOLDER_MODE });
  await own(folder);
  for await (const { path, file } of unpack(extensions)) {
    signal.throwIfAborted();
    const place = join(folder, path);
    if (file === null) await mkdir(place, { mode: FOLDER_MODE });
    else await writeFile(place, file.content, { flag: 'wx', mode: FILE_MODE });
    await own(place);
  }
}

/**
 * The same as a tar whose files are root's, made as it is read; fails with what reading an
 * extension throws. Nothing of it is begun before that.
 */
export function extensionsTar(extensions: readonly ExtensionSource[]): Readable {
  return Readable.from(archive(extensions), { objectMode: false });
}

async function* archive(extensions: readonly ExtensionSource[]): AsyncGenerator<Buffer> {
  const tar = pack();
  async function fill(): Promise<void> {
    for await (const { path: name, file } of unpack(extensions)) {
      if (file === null) tar.entry({ name, type: 'directory', mode: FOLDER_MODE });
      else await pipeline(file.content, tar.entry({ name, mode: FILE_MODE, size: file.bytes }));
    }
    tar.finalize();
  }
  fill().catch((error: unknown) => tar.destroy(error as Error));
  yield* tar as AsyncIterable<Buffer>;
}
