import { Readable } from 'node:stream';
import { ZipFile } from 'yazl';
import { fileKey, type SessionFile } from '#src/kernel/domain/session/files.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';

/**
 * A zip of the files, made as it is read, one file after the other. They are stored as they are:
 * most downloads are compressed already, and so the length is known before.
 */
export async function zipOf(
  objects: Pick<ObjectStore, 'get'>,
  session: { organizationId: string; id: string },
  files: readonly SessionFile[],
): Promise<{ bytes: number; body: Readable }> {
  const zip = new ZipFile();
  const body = zip.outputStream as Readable;
  zip.on('error', (error: Error) => body.destroy(error));
  // Who reads the zip gets its error; until somebody reads, it must end nothing.
  body.on('error', () => undefined);
  for (const { name, bytes, createdAt, fileId } of files) {
    const about = { mtime: new Date(createdAt), mode: 0o100_644, compress: false, size: bytes };
    zip.addReadStreamLazy(name, about, (take) => {
      const from = contentOf(objects, fileKey(session, fileId));
      const content = Readable.from(from, { objectMode: false });
      // Yazl listens to neither.
      content.on('error', (error) => body.destroy(error));
      const stop = () => content.destroy();
      body.once('close', stop);
      content.once('close', () => body.off('close', stop));
      take(null, content);
    });
  }
  const sized = Promise.withResolvers<number>();
  // The types leave out the size that it is called with.
  const onSize = sized.resolve as () => void;
  zip.end({ forceZip64Format: false, comment: '' }, onSize);
  return { bytes: await sized.promise, body };
}

/** @throws Error where the file was removed meanwhile: the zip breaks off */
async function* contentOf(objects: Pick<ObjectStore, 'get'>, key: string) {
  const found = await objects.get(key);
  if (found === null) throw new Error('a file was removed while a zip was made');
  yield* found.body;
}
