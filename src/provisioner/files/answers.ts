import { fileKey } from '#src/domain/session/files.ts';
import { givenFileName } from '#src/domain/session/file-name.ts';
import { within } from '#src/async/timeout.ts';
import { WORKING_MS, type FileAnswer, type FileQuestion } from '#src/messaging/session-files.ts';
import type { Shelf } from './shelf.ts';

/** Uploads that wait for their turn at one session. */
const PLACING_MAX = 64;

/** Answers about the shelf of one session. */
export function createAnswers(shelf: Shelf, { workingMs = WORKING_MS } = {}) {
  /** Uploads under way, by their file's id: one that is asked for again goes on. */
  const placing = new Map<string, Promise<FileAnswer>>();

  async function begin({ name, bytes }: Asked<'begin'>): Promise<FileAnswer> {
    const excess = shelf.excess(name, bytes ?? 0);
    if (excess !== null) {
      await shelf.refuse(name, 'upload', excess.reason, { bytes: bytes ?? 0 });
      return { kind: 'refused', ...excess };
    }
    const { bytesMax, limit } = shelf.room(name);
    return { kind: 'begun', bytesMax, limit };
  }

  async function place({ name, fileId, bytes, sha256 }: Asked<'place'>): Promise<FileAnswer> {
    const { folders, objects, workloadId, identity } = shelf;
    const excess = shelf.excess(name, bytes);
    if (excess !== null) {
      await shelf.refuse(name, 'upload', excess.reason, { bytes });
      return { kind: 'refused', ...excess };
    }
    const signal = shelf.bounded();
    const found = await objects.get(fileKey(identity, fileId), undefined, { signal });
    if (found === null || found.object.sha256 !== sha256) return { kind: 'failed' };
    await folders.write(workloadId, name, { bytes, body: found.body }, signal);
    const isNew = !shelf.has(name);
    const at = await shelf.add({ fileId, name, bytes, sha256, origin: 'upload' });
    return { kind: 'placed', path: folders.path(workloadId, name), isNew, at };
  }

  function placeOnce(question: Asked<'place'>): Promise<FileAnswer> {
    const { fileId } = question;
    const begun = placing.get(fileId);
    if (begun !== undefined) return begun;
    if (placing.size >= PLACING_MAX) return Promise.resolve({ kind: 'failed' });
    const placed = shelf.inTurn(() => place(question));
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
      case 'place':
        return within(workingMs, placeOnce(question), (): FileAnswer => ({ kind: 'working' }));
      case 'remove': {
        const wasThere = await shelf.inTurn(() => shelf.remove(question.name));
        return { kind: wasThere ? 'removed' : 'no-file' };
      }
    }
  };
}

const FORGET_MS = 60_000;
type Asked<Ask> = Extract<FileQuestion, { ask: Ask }>;
