import type { Readable } from 'node:stream';
import { fromBufferPromise, type Entry, type ZipFile } from 'yauzl';

/** Zips of extensions: read entry by entry, within bounds that no zip exceeds by what it claims. */

export const FILES_MAX = 5_000;
export const UNPACKED_BYTES_MAX = 100 * 1024 ** 2;
/** Folders and what the store adds are entries too. */
const ENTRIES_MAX = 2 * FILES_MAX;
const PATH_BYTES_MAX = 512;
const SEGMENT_BYTES_MAX = 200;
const DEPTH_MAX = 32;
/** What Chromium's store adds: signatures. Chromium refuses an unpacked extension that has it. */
const STORE_FOLDER = '_metadata/';
/** Type bits of a Unix mode, and those of a symbolic link. */
const TYPE_BITS = 0o170000;
const SYMLINK = 0o120000;

/** What is wrong with an extension; a sentence for its uploader. */
export class BadExtension extends Error {
  override readonly name = 'BadExtension';
}

/** A file of an extension: its path is relative, has no `..` and is separated by `/`. */
export type ExtensionFile = {
  path: string;
  bytes: number;
  /** Inflated as it is read, before the next file; exactly `bytes`. @throws BadExtension */
  content: AsyncIterable<Buffer>;
};

/**
 * The files of a zip in its order, without those of the store. A piece of one is in memory at a
 * time.
 * @throws BadExtension
 */
export async function* readFiles(zip: Buffer): AsyncGenerator<ExtensionFile, void, void> {
  const opened = await open(zip);
  const paths = new Set<string>();
  const folders = new Set<string>();
  let bytesLeft = UNPACKED_BYTES_MAX;
  if (opened.entryCount > ENTRIES_MAX)
    throw new BadExtension(`It has more than ${ENTRIES_MAX} entries.`);
  try {
    for await (const entry of opened.eachEntry()) {
      const path = entry.fileName;
      if (path.endsWith('/') || path.startsWith(STORE_FOLDER)) continue;
      requireSafe(entry);
      addPath(paths, folders, path);
      if (paths.size > FILES_MAX) throw new BadExtension(`It has more than ${FILES_MAX} files.`);
      const bytes = entry.uncompressedSize;
      if (bytes > bytesLeft)
        throw new BadExtension(`It unpacks to more than ${UNPACKED_BYTES_MAX} bytes.`);
      if (entry.isEncrypted()) throw new BadExtension('It is encrypted.');
      bytesLeft -= bytes;
      yield { path, bytes, content: contentOf(opened, entry) };
    }
  } catch (error) {
    throw asBad(error);
  } finally {
    opened.close();
  }
}

async function open(zip: Buffer): Promise<ZipFile> {
  try {
    return await fromBufferPromise(zip, { strictFileNames: true, validateEntrySizes: true });
  } catch (error) {
    throw asBad(error);
  }
}

/** The library refuses absolute paths, `..` and backslashes; here is what it lets pass. */
function requireSafe({ fileName, externalFileAttributes, versionMadeBy }: Entry): void {
  const segments = fileName.split('/');
  const isBad =
    Buffer.byteLength(fileName) > PATH_BYTES_MAX ||
    segments.length > DEPTH_MAX ||
    segments.some(
      (segment) =>
        segment === '' ||
        segment === '.' ||
        segment === '..' ||
        Buffer.byteLength(segment) > SEGMENT_BYTES_MAX,
    ) ||
    // oxlint-disable-next-line no-control-regex
    /[\u0000-\u001f\u007f]/.test(fileName);
  if (isBad) throw new BadExtension(`The name ${quoted(fileName)} is not allowed.`);
  const isUnix = versionMadeBy >> 8 === 3;
  if (isUnix && ((externalFileAttributes >>> 16) & TYPE_BITS) === SYMLINK)
    throw new BadExtension(`${quoted(fileName)} is a symbolic link.`);
}

/** Each path is one file, and no file is a folder too, whatever the case of letters. */
function addPath(paths: Set<string>, folders: Set<string>, path: string): void {
  const segments = path.toLowerCase().split('/');
  const above = segments.slice(1).map((_, at) => segments.slice(0, at + 1).join('/'));
  const own = segments.join('/');
  if (paths.has(own) || folders.has(own) || above.some((folder) => paths.has(folder)))
    throw new BadExtension(`It has ${quoted(path)} twice.`);
  paths.add(own);
  for (const folder of above) folders.add(folder);
}

/** What a zip claims of a size is not believed: it is counted while it is inflated. */
async function* contentOf(zip: ZipFile, entry: Entry): AsyncGenerator<Buffer, void, void> {
  let left = entry.uncompressedSize;
  try {
    const stream: Readable = await zip.openReadStreamPromise(entry);
    for await (const piece of stream as AsyncIterable<Buffer>) {
      left -= piece.length;
      if (left < 0) break;
      yield piece;
    }
  } catch (error) {
    throw asBad(error);
  }
  if (left !== 0) throw new BadExtension(`${quoted(entry.fileName)} has not the size it claims.`);
}

function asBad(error: unknown): BadExtension {
  if (error instanceof BadExtension) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new BadExtension(`It is not a zip that can be read: ${reason.slice(0, 200)}.`);
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}
