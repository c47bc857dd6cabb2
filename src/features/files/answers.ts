import { fileKey } from '#src/kernel/domain/session/files.ts';
import { givenFileName } from '#src/kernel/domain/session/file-name.ts';
import { within } from '#src/kernel/async/timeout.ts';
import {
  WORKING_MS,
  type FileAnswer,
  type FileQuestion,
} from '#src/kernel/messaging/session-files.ts';
import type { Coming, SessionFileStore } from './session-file-store.ts';

/** Uploads that wait for their turn at one session. */
const PLACING_MAX = 64;

/** Answers about the files of one session. */
export function createAnswers(fileStore: SessionFileStore, { workingMs = WORKING_MS } = {}) {
  /** Uploads under way, by their file's id: one that is asked for again goes on. */
  const placing = new Map<string, Promise<FileAnswer>>();

  /** Uploads on their way by name; each counts until it is placed or dropped, or for a while. */
  const coming: Uploads = new Map();

  async function begin({ name, fileId, bytes }: Asked<'begin'>): Promise<FileAnswer> {
    const others = comingBeside(name, coming, fileStore);
    const excess = fileStore.excess(name, bytes ?? 0, others);
    if (excess !== null) {
      await fileStore.refuse(name, 'upload', excess.reason, { bytes: bytes ?? 0 });
      return { kind: 'refused', ...excess };
    }
    const { bytesMax, limit } = fileStore.room(name, others);
    coming.set(name, { fileId, bytes: bytes ?? 0, until: performance.now() + COMING_MS });
    return { kind: 'begun', bytesMax, limit };
  }
  function drop({ name, fileId }: Asked<'drop'>): FileAnswer {
    // Not a later upload of the same name.
    if (coming.get(name)?.fileId === fileId) coming.delete(name);
    return { kind: 'dropped' };
  }

  async function place({ name, fileId, bytes, sha256 }: Asked<'place'>): Promise<FileAnswer> {
    const { folders, objects, workloadId, identity } = fileStore;
    const others = comingBeside(name, coming, fileStore);
    coming.delete(name);
    const excess = fileStore.excess(name, bytes, others);
    if (excess !== null) {
      await fileStore.refuse(name, 'upload', excess.reason, { bytes });
      return { kind: 'refused', ...excess };
    }
    const signal = fileStore.bounded();
    const found = await objects.get(fileKey(identity, fileId), undefined, { signal });
    if (found === null || found.object.sha256 !== sha256) return { kind: 'failed' };
    await folders.write(workloadId, name, { bytes, body: found.body }, signal);
    const isNew = !fileStore.has(name);
    const at = await fileStore.add({ fileId, name, bytes, sha256, origin: 'upload' });
    return { kind: 'placed', path: folders.path(workloadId, name), isNew, at };
  }

  function placeOnce(question: Asked<'place'>): Promise<FileAnswer> {
    const { fileId } = question;
    const begun = placing.get(fileId);
    if (begun !== undefined) return begun;
    if (placing.size >= PLACING_MAX) return Promise.resolve({ kind: 'failed' });
    const placed = fileStore.inTurn(() => place(question));
    placing.set(fileId, placed);
    // Kept for an answer that was lost on its way.
    const forget = () => void setTimeout(() => placing.delete(fileId), FORGET_MS).unref();
    placed.then(forget, forget);
    return placed;
  }

  return async (question: FileQuestion): Promise<FileAnswer> => {
    if (givenFileName(question.name) !== question.name) return { kind: 'failed' };
    switch (question.ask) {
      case 'begin':
        return begin(question);
      case 'drop':
        return drop(question);
      case 'place':
        return within(workingMs, placeOnce(question), (): FileAnswer => ({ kind: 'working' }));
      case 'remove': {
        const wasThere = await fileStore.inTurn(() => fileStore.remove(question.name));
        return { kind: wasThere ? 'removed' : 'no-file' };
      }
    }
  };
}

type Uploads = Map<string, { fileId: string; bytes: number; until: number }>;

/** What the uploads of other names hold; those whose time is over are removed. */
function comingBeside(name: string, coming: Uploads, fileStore: SessionFileStore): Coming {
  const all = { bytes: 0, files: 0 };
  for (const [one, { bytes, until }] of coming) {
    if (until < performance.now()) coming.delete(one);
    else if (one !== name) {
      // One that replaces a file counts as a whole: both are there for a while.
      all.bytes += bytes;
      all.files += fileStore.has(one) ? 0 : 1;
    }
  }
  return all;
}

/** An upload that takes longer, or whose API was killed or is cut off, holds room no more. */
const COMING_MS = 10 * 60_000;
const FORGET_MS = 60_000;
type Asked<Ask> = Extract<FileQuestion, { ask: Ask }>;
