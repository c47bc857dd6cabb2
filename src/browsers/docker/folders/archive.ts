import { once } from 'node:events';
import { Readable } from 'node:stream';
import { extract, pack, type Header } from 'tar-stream';
import type Docker from 'dockerode';
import type { FolderFile, OpenedFile } from '../../browsers.ts';

/** The engine's archives: tars that are made and read as streams. */

/** The browser's user in the image. */
export const OWNER = { uid: 1000, gid: 1000 };

/**
 * Unpacks a tar in a container.
 * @param path a folder that is there
 * @throws what reading the tar throws; the signal's reason; the engine's error
 */
export async function putTar(
  container: Docker.Container,
  tar: Readable,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController();
  tar.on('error', (error) => failed.abort(error));
  const ended = AbortSignal.any([failed.signal, signal]);
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(ended.reason as Error);
  ended.addEventListener('abort', onAbort, { once: true });
  const putting = container.putArchive(tar, { path, abortSignal: ended });
  putting.catch(() => undefined); // after an abort the client may never settle it, or fail late
  try {
    await Promise.race([putting, aborted]);
  } finally {
    ended.removeEventListener('abort', onAbort);
    tar.destroy();
  }
}

/** A tar of one file, made as it is read. A body of another length fails. */
export function archiveOf(
  name: string,
  { bytes, body }: FolderFile,
  signal: AbortSignal,
): Readable {
  const tar = pack();
  const header: Partial<Header> & Pick<Header, 'name'> = {
    name,
    size: bytes,
    mode: 0o600,
    mtime: new Date(),
    ...OWNER,
  };
  async function fill(): Promise<void> {
    const entry = tar.entry(header, (error) => {
      if (error != null) tar.destroy(error);
      else tar.finalize();
    });
    // The tar's own error says the same.
    entry.on('error', () => undefined);
    for await (const piece of body) {
      signal.throwIfAborted();
      if (!entry.write(piece)) await once(entry, 'drain', { signal });
    }
    entry.end(undefined);
  }
  fill().catch((error: unknown) => tar.destroy(error as Error));
  return Readable.from(tar);
}

/** The file of a tar with one; null: it is no file. */
export async function fileIn(archive: NodeJS.ReadableStream): Promise<OpenedFile | null> {
  const source = archive as Readable;
  const tar = extract();
  source.on('error', (error) => tar.destroy(error));
  source.pipe(tar);
  await using opened = new AsyncDisposableStack();
  opened.defer(() => void source.destroy());
  const { value: entry, done } = await tar[Symbol.asyncIterator]().next();
  if (done === true || entry.header.type !== 'file') return null;
  const bytes = entry.header.size ?? 0;
  const held = opened.move();
  return {
    bytes,
    body: bytesOf(entry as AsyncIterable<Uint8Array>, bytes),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

async function* bytesOf(entry: AsyncIterable<Uint8Array>, bytes: number) {
  let read = 0;
  for await (const piece of entry) {
    read += piece.length;
    yield piece;
  }
  if (read !== bytes) throw new Error('the file was cut off while it was read');
}
