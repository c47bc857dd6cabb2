import { basename } from 'node:path';
import { filesMax, type FileRefusal } from '#events/session/files.ts';
import { safeFileName, unusedFileName } from '#src/kernel/domain/session/file-name.ts';
import { fileKey } from '#src/kernel/domain/session/files.ts';
import { newId } from '#src/kernel/ids.ts';
import { OrganizationStoreFull } from '#src/kernel/objects/object-store.ts';
import type { PageConsole } from './download-controls.ts';
import { NotTaken, type Excess, type SessionFileStore } from './session-file-store.ts';

/** What Chromium tells of a download. */
export type DownloadBegin = { guid: string; suggestedFilename: string; frameId?: string };
export type DownloadProgress = {
  guid: string;
  /** 0: not known. */
  totalBytes: number;
  receivedBytes: number;
  state: 'inProgress' | 'completed' | 'canceled';
  /** Where it is; newer versions of Chromium tell it. */
  filePath?: string;
};

/** Downloads of a session that are followed; a further one is cancelled without a record. */
const RUNNING_MAX = 2 * filesMax;
/** Lines in the consoles of a session's pages: a page may begin downloads without end. */
const LINES_MAX = 100;

export type Downloads = ReturnType<typeof createDownloads>;

type Download = {
  guid: string;
  name: string;
  bytes: number;
  refused: Excess | null;
  /** Chromium has all of it. */
  isComplete: boolean;
  /** Of the page that began it. */
  writeToPage: PageConsole;
};

/**
 * The downloads of one session. Chromium writes each into the folder under its guid; once complete
 * it gets its own name, is copied into the object store and recorded. One that is more than the
 * session may have is cancelled while it runs, and the page's console says why.
 */
export function createDownloads(fileStore: SessionFileStore, cancel: (guid: string) => void) {
  const running = new Map<string, Download>();
  let lines = 0;

  /** All that comes beside this one. */
  function coming(besides: Download) {
    const others = running.values().filter((one) => one !== besides && one.refused === null);
    return others.reduce((sum, { bytes }) => ({ bytes: sum.bytes + bytes, files: sum.files + 1 }), {
      bytes: 0,
      files: 0,
    });
  }
  function check(guid: string, download: Download): void {
    if (download.refused !== null) return;
    download.refused = fileStore.excess(null, download.bytes, coming(download));
    if (download.refused === null) return;
    cancel(guid);
    tellWhy(download, download.refused);
  }
  function tellWhy({ writeToPage, name }: Download, excess: Told): void {
    lines += 1;
    if (lines <= LINES_MAX) writeToPage(refusalText(name, excess));
  }

  return {
    /** @param writeToPage of the page that began it, as of that moment */
    begin({ guid, suggestedFilename }: DownloadBegin, writeToPage: PageConsole): void {
      // Only a browser that a page has taken over begins so many in spite of cancels.
      if (running.size >= RUNNING_MAX) return cancel(guid);
      const name = safeFileName(suggestedFilename);
      const download = { guid, name, bytes: 0, refused: null, isComplete: false, writeToPage };
      running.set(guid, download);
      check(guid, download);
    },
    /** @returns what follows from it, once it is done */
    async progress({ guid, state, ...told }: DownloadProgress): Promise<void> {
      const download = running.get(guid);
      if (download === undefined || download.isComplete) return;
      download.bytes = Math.max(told.totalBytes, told.receivedBytes);
      if (state === 'inProgress') return check(guid, download);
      if (state === 'canceled') {
        running.delete(guid);
        return refuse(fileStore, download, download.refused?.reason ?? 'failed');
      }
      download.isComplete = true;
      const inFolder = basename(told.filePath ?? guid);
      try {
        await fileStore.inTurn(() => land(fileStore, download, inFolder, tellWhy));
      } catch (error) {
        // Not if the session's end has recorded it.
        if (running.delete(guid)) await refuse(fileStore, download, 'failed');
        throw error;
      }
      running.delete(guid);
    },
    /** Cancels what has not come whole, and records it as failed. */
    async end(): Promise<void> {
      const left = [...running.values()];
      running.clear();
      for (const download of left) {
        if (download.refused === null) cancel(download.guid);
        void refuse(fileStore, download, download.refused?.reason ?? 'failed');
      }
      await fileStore.recorded();
    },
  };
}

function refuse(
  fileStore: SessionFileStore,
  { guid, name, bytes }: Download,
  reason: FileRefusal,
): Promise<void> {
  return fileStore.refuse(name, 'download', reason, { bytes, guid });
}

/** What a page's console says: a bound of the session, or that of its organization. */
type Told = Omit<Excess, 'reason'> & { reason: Excess['reason'] | 'organization' };

const BOUNDS = {
  too_large: ['FILE_TOO_LARGE', 'a file of this session'],
  quota: ['FILES_QUOTA_EXCEEDED', 'all files of this session'],
  organization: ['STORAGE_LIMIT_EXCEEDED', 'all that its organization stores'],
} as const;

/** For a page's console: what was refused, the bound, and the code that an upload would get. */
function refusalText(name: string, { reason, max, of }: Told): string {
  const [code, whose] = BOUNDS[reason];
  const bound = of === 'bytes' ? `${whose} may have` : 'this session may have';
  return (
    `The download of ${JSON.stringify(name)} was refused. ` +
    `${code}: ${bound} ${max.toLocaleString('en')} ${of}.`
  );
}

/** Names the complete download, stores and records it. */
async function land(
  fileStore: SessionFileStore,
  download: Download,
  inFolder: string,
  tellWhy: (download: Download, excess: Told) => void,
): Promise<void> {
  const { folders, objects, workloadId, identity } = fileStore;
  const { guid } = download;
  const signal = fileStore.bounded();
  const name = unusedFileName(download.name, (one) => fileStore.has(one));
  const isThere = await folders.rename(workloadId, inFolder, name, signal);
  await using file = isThere ? await folders.read(workloadId, name, signal) : null;
  if (file === null) return fileStore.refuse(name, 'download', 'failed', { guid });
  // Chromium tells how much it has received now and then, and not of what a page makes itself.
  const excess = download.refused ?? fileStore.excess(null, file.bytes);
  if (excess !== null) {
    // The browser's folder can be changed only then.
    await file[Symbol.asyncDispose]();
    await folders.remove(workloadId, name, signal);
    if (download.refused === null) tellWhy(download, excess);
    return fileStore.refuse(name, 'download', excess.reason, { bytes: file.bytes, guid });
  }
  const fileId = newId('fil');
  const key = fileKey(identity, fileId);
  const stored = await objects
    .put(key, file.body, { signal, bytes: file.bytes })
    .catch((error: unknown) => {
      if (error instanceof OrganizationStoreFull) return error;
      throw error;
    });
  if (stored instanceof OrganizationStoreFull) {
    const { maxBytes: max } = stored;
    await file[Symbol.asyncDispose]();
    await folders.remove(workloadId, name, signal);
    tellWhy(download, { reason: 'organization', max, of: 'bytes' });
    return fileStore.refuse(name, 'download', 'quota', { bytes: file.bytes, guid });
  }
  const { bytes, sha256 } = stored;
  await fileStore
    .add({ fileId, name, bytes, sha256, origin: 'download', guid })
    .catch(async (error) => {
      // Otherwise an event may name it: it stays for the sweep.
      if (error instanceof NotTaken) await fileStore.forget(fileId);
      throw error;
    });
}
