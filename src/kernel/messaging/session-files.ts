import type { FileRefusal } from '#events/session/files.ts';

/**
 * What a server is asked about a session's folder, and what it answers. What is in files goes
 * through the object store, not through here.
 */
export type FileQuestion = {
  organizationId: string;
  sessionId: string;
  /** The session's browser, as its state names it. */
  workloadId: string;
} & (
  | {
      /** May a file of this name be uploaded? It then holds room until `place` or `drop`. */
      ask: 'begin';
      name: string;
      fileId: string;
      /** Its length; null: not known yet. */
      bytes: number | null;
    }
  | {
      /** Gives back the room of an upload that will not be placed. */
      ask: 'drop';
      name: string;
      fileId: string;
    }
  | {
      /**
       * Puts a file that the object store has into the folder, and records it. To be asked again
       * while the answer is `working`; it is done once.
       */
      ask: 'place';
      name: string;
      fileId: string;
      bytes: number;
      /** 64 hexadecimal digits. */
      sha256: string;
    }
  | {
      /** Removes a file from the folder, and records that. */
      ask: 'remove';
      name: string;
    }
);

export type FileAnswer =
  /** It may have so many bytes; `limit` is what a longer one would exceed. */
  | { kind: 'begun'; bytesMax: number; limit: FileLimit }
  | { kind: 'dropped' }
  /** `path` is the file's in the browser's own file system; `at` when it was recorded. */
  | { kind: 'placed'; path: string; isNew: boolean; at: string }
  /** It takes longer than an answer may. */
  | { kind: 'working' }
  | { kind: 'removed' }
  /** There is no file of the name. */
  | { kind: 'no-file' }
  | { kind: 'refused'; reason: Extract<FileRefusal, 'too_large' | 'quota'>; max: number; of: Unit }
  /** The session's browser is not, or no longer, on this server. */
  | { kind: 'not-here' }
  /** The browser's folder or the object store does not answer. */
  | { kind: 'failed' }
  /** The server does not answer. */
  | { kind: 'no-server' };

export type FileLimit = Extract<FileRefusal, 'too_large' | 'quota'>;
type Unit = 'bytes' | 'files';

/** A server that works longer than this on a question answers `working`. */
export const WORKING_MS = 10_000;
