import type { Static } from 'typebox';
import type * as schemas from '#src/features/files/routes/schemas.ts';
import { openContent, saveTo, streamOf, type FileContent } from './file-content.ts';
import { ServiceError } from './failures.ts';
import { nodeModule } from './node-module.ts';
import type { CallOptions, Requester, StreamOptions } from './requester.ts';
import { saveDownload, type DownloadLike, type SaveOptions } from './save-download.ts';

export type { FileContent } from './file-content.ts';
export type { DownloadLike, SaveOptions } from './save-download.ts';

/** How a file came to the session: the browser saved it, or a client put it there. */
type Origin = 'download' | 'upload';
/** A file of a session. */
export type SessionFile = Omit<Static<typeof schemas.SessionFileInfo>, 'origin'> & {
  origin: Origin;
};
/** `path` is the file's in the browser's file system: for Playwright's `setInputFiles`. */
export type UploadedFile = SessionFile & { path: string };

/** A path of this machine (in Node), or the bytes. A stream can be sent once, so is not retried. */
export type FileSource = string | Blob | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
export type UploadOptions = CallOptions & {
  /** Its name in the session; default: that of the path, or of the File. */
  name?: string;
};

/** The files of one session, by its id. */
export type SessionFiles = {
  /** In the order in which they came. Also after the end of the session, for a day by default. */
  listFiles(id: string, options?: CallOptions): Promise<SessionFile[]>;
  /** @throws ServiceError with FILE_NOT_FOUND */
  downloadFile(id: string, name: string, options?: StreamOptions): Promise<FileContent>;
  /**
   * Puts a file into the folder of an active session; it replaces one of the same name.
   * It may take 120 s and a second for each 64 KiB.
   * @throws ServiceError with FILE_TOO_LARGE, FILES_QUOTA_EXCEEDED, INVALID_FILE_NAME, or, for what
   * is too slow, FILE_INCOMPLETE
   */
  uploadFile(id: string, source: FileSource, options?: UploadOptions): Promise<UploadedFile>;
  /** @throws ServiceError with FILE_NOT_FOUND */
  removeFile(id: string, name: string, options?: CallOptions): Promise<void>;
  /** All files as a zip. */
  filesZip(id: string, options?: StreamOptions): Promise<FilesZip>;
  /**
   * Waits until a download of the browser is among the session's files, and opens it; `to` writes
   * it to a path, too. In place of Playwright's `download.saveAs`, which looks on this machine's
   * disk. @throws DownloadRefused with the reason
   */
  saveDownload(id: string, download: DownloadLike, options?: SaveOptions): Promise<FileContent>;
};

export type FilesZip = {
  body: ReadableStream<Uint8Array>;
  /** Writes it to a file of this machine; in Node alone. */
  saveTo(path: string): Promise<void>;
};

/** Time for one try of an upload, unless the caller sets one. */
const UPLOAD_MS = 30 * 60_000;

/** @param pathOf the path of a session */
export function createFiles(requester: Requester, pathOf: (id: string) => string): SessionFiles {
  const filePath = (id: string, name: string) => {
    // In an address these are no names: the request would be another one.
    if (name === '.' || name === '..') throw invalidName(name);
    return `${pathOf(id)}/files/${encodeURIComponent(name)}`;
  };
  const files: SessionFiles = {
    async listFiles(id, options) {
      const path = `${pathOf(id)}/files`;
      const list = await requester.json<{ files: SessionFile[] }>({
        method: 'GET',
        path,
        ...options,
      });
      return list.files;
    },
    async downloadFile(id, name, options) {
      return await openContent(requester, filePath(id, name), name, options);
    },
    async uploadFile(id, source, { name = nameOf(source), ...options } = {}) {
      return await requester.json<UploadedFile>({
        method: 'PUT',
        path: filePath(id, name),
        bytes: typeof source === 'string' ? await nodeModule('node:fs').openAsBlob(source) : source,
        timeoutMs: UPLOAD_MS,
        ...options,
      });
    },
    async removeFile(id, name, options) {
      const path = filePath(id, name);
      await requester.read({ method: 'DELETE', path, ...options }, async () => undefined);
    },
    async filesZip(id, { signal } = {}) {
      const path = `${pathOf(id)}/files.zip`;
      const { body: stream } = await requester.open({
        method: 'GET',
        path,
        ...(signal === undefined ? {} : { signal }),
      });
      const body = stream ?? streamOf(nothing());
      return { body, saveTo: (to) => saveTo(body, to) };
    },
    saveDownload: (id, download, options) =>
      saveDownload(
        {
          requester,
          path: pathOf(id),
          open: (name, signal) => files.downloadFile(id, name, signal),
        },
        download,
        options,
      ),
  };
  return files;
}

/** As the service refuses it. */
function invalidName(name: string): ServiceError {
  const message = 'A file cannot have this name.';
  return new ServiceError({ error: 'INVALID_FILE_NAME', message, code: 400, context: { name } });
}

/** @throws TypeError: bytes have no name */
function nameOf(source: FileSource): string {
  const name =
    typeof source === 'string' ? source.split(/[/\\]/).at(-1) : (source as { name?: unknown }).name;
  if (typeof name === 'string' && name !== '') return name;
  throw new TypeError('a file needs a name: uploadFile(source, { name })');
}

async function* nothing(): AsyncGenerator<Uint8Array, void, void> {}
