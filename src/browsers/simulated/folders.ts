import { FolderGone, type BrowserFolders } from '../browsers.ts';

/** The folders of simulated browsers, in memory. */
export type SimulatedFolders = BrowserFolders & {
  open(workloadId: string): void;
  close(workloadId: string): void;
  /** Puts a file there as the browser would. */
  put(workloadId: string, name: string, content: Uint8Array): void;
};

export function createSimulatedFolders(): SimulatedFolders {
  const folders = new Map<string, Map<string, Uint8Array>>();
  function folderOf(workloadId: string): Map<string, Uint8Array> {
    const folder = folders.get(workloadId);
    if (folder === undefined) throw new FolderGone(`browser ${workloadId} is gone`);
    return folder;
  }
  return {
    open: (workloadId) => void folders.set(workloadId, new Map()),
    close: (workloadId) => void folders.delete(workloadId),
    put: (workloadId, name, content) => void folderOf(workloadId).set(name, content),
    path: (_, name) => `/simulated/downloads/${name}`,
    async read(workloadId, name) {
      const content = folderOf(workloadId).get(name);
      if (content === undefined) return null;
      return {
        bytes: content.length,
        body: piecesOf(content),
        [Symbol.asyncDispose]: async () => undefined,
      };
    },
    async write(workloadId, name, { body }, signal) {
      const pieces: Uint8Array[] = [];
      for await (const piece of body) {
        signal.throwIfAborted();
        pieces.push(Uint8Array.from(piece));
      }
      folderOf(workloadId).set(name, Buffer.concat(pieces));
    },
    async rename(workloadId, from, to) {
      const folder = folderOf(workloadId);
      const content = folder.get(from);
      if (content === undefined) return false;
      folder.delete(from);
      folder.set(to, content);
      return true;
    },
    async remove(workloadId, name) {
      folderOf(workloadId).delete(name);
    },
  };
}

async function* piecesOf(content: Uint8Array) {
  if (content.length > 0) yield content;
}
