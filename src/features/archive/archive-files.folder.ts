import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { link, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { FileMissing, type ArchiveFiles } from './archive-files.ts';

/** Begins the name of a file that is being written; it is not listed. */
const UNFINISHED = '.unfinished-';
/** No write takes that long: an older unfinished file is of a process that was killed. */
const UNFINISHED_MAX_MS = 24 * 60 * 60_000;
const CHUNK_BYTES = 256 * 1024;

/**
 * The files of a folder. It is created, and cleared of unfinished files, before the first write: a
 * process that only reads may have it mounted read-only, and before anything is archived.
 */
export function openFolderFiles(folder: string): ArchiveFiles {
  const pathOf = (name: string) => join(folder, name);
  let preparing: Promise<void> | null = null;

  function prepared(): Promise<void> {
    preparing ??= prepare(folder).catch((error: unknown) => {
      preparing = null;
      throw error;
    });
    return preparing;
  }

  /** Writes and syncs an unfinished file, and lets `finish` give it its name. */
  async function writeVia<T>(
    data: Buffer | AsyncIterable<Buffer>,
    finish: (path: string) => Promise<T>,
  ): Promise<T> {
    await prepared();
    const path = pathOf(`${UNFINISHED}${randomUUID()}`);
    try {
      {
        await using file = await open(path, 'wx', 0o600);
        for await (const chunk of Buffer.isBuffer(data) ? [data] : data)
          await file.writeFile(chunk);
        await file.sync();
      }
      const result = await finish(path);
      await syncFolder(folder);
      return result;
    } finally {
      await rm(path, { force: true });
    }
  }
  return {
    async list() {
      const names = await namesIn(folder);
      return names.filter((name) => !name.startsWith(UNFINISHED)).toSorted();
    },
    size: async (name) => (await existing(name, stat(pathOf(name)))).size,
    async read(name, range) {
      await using file = await existing(name, open(pathOf(name)));
      if (range === undefined) return file.readFile();
      const buffer = Buffer.allocUnsafe(range.length);
      return buffer.subarray(0, await fill(file, buffer, range.offset));
    },
    async *stream(name) {
      const chunks = createReadStream(pathOf(name), { highWaterMark: CHUNK_BYTES });
      try {
        for await (const chunk of chunks) yield chunk as Buffer;
      } catch (error) {
        throw missingOr(name, error);
      }
    },
    write: (name, data) => writeVia(data, (path) => rename(path, pathOf(name))),
    writeNew: (name, data) => writeVia(data, (path) => linkNew(path, pathOf(name))),
    async remove(name) {
      await rm(pathOf(name), { force: true });
    },
  };
}

type OpenFile = Awaited<ReturnType<typeof open>>;

/** Reads until the buffer is full or the file ends; a single read may return less. */
async function fill(file: OpenFile, buffer: Buffer, offset: number): Promise<number> {
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

/** A rename would replace a file of that name; a link fails. */
async function linkNew(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Names are durable once the folder is synced. */
async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder);
  await handle.sync();
}

/** Empty if the folder does not exist yet. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

async function prepare(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeUnfinished(folder);
}

async function removeUnfinished(folder: string): Promise<void> {
  const oldest = Date.now() - UNFINISHED_MAX_MS;
  for (const name of await readdir(folder)) {
    if (!name.startsWith(UNFINISHED)) continue;
    const found = await stat(join(folder, name)).catch(() => null);
    if (found !== null && found.mtimeMs < oldest) await rm(join(folder, name), { force: true });
  }
}

async function existing<T>(name: string, result: Promise<T>): Promise<T> {
  return result.catch((error: unknown) => {
    throw missingOr(name, error);
  });
}

function missingOr(name: string, error: unknown): unknown {
  const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
  return isMissing ? new FileMissing(name, error) : error;
}
