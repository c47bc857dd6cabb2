import type { Readable } from 'node:stream';
import type { SessionState } from '#events/session.ts';
import { fileKey, type SessionFile } from '#src/kernel/domain/session/files.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import type { FileAnswer } from '#src/kernel/messaging/session-files.ts';
import { ObjectStoreFull } from '#src/kernel/objects/object-store.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { Unreadable } from '#src/roles/api/http/body-coding.ts';
import { arriving, TooSlow } from '#src/roles/api/files/paced-body.ts';
import { storeFullRejection } from '#src/roles/api/http/store-full.ts';
import { askServer, refusalOf, tooMuch } from '#src/roles/api/files/session-files.ts';

/** How long the session's server may take to put a file into the folder, after it has arrived. */
export const PLACE_MS = 10 * 60_000;

export type Uploaded = { file: SessionFile; path: string; isNew: boolean };

type ActiveSession = Extract<SessionState, { status: 'active' }>;

/**
 * Takes an upload: into the object store as it arrives, from there into the browser's folder. Until
 * both are done the session has no such file. What is refused leaves nothing. Where the server's
 * answer is lost, the file may have been recorded: its content stays, at the longest as long as the
 * session's files.
 * @param bytes its length; null: the client has not said
 */
export async function takeUpload(
  dependencies: ApiDependencies,
  session: ActiveSession,
  name: string,
  body: Readable,
  bytes: number | null,
): Promise<Uploaded | Rejection> {
  const place = await dependencies.transfers.begin('upload', session.organizationId);
  if (isRejection(place)) return place;
  const file = { name, fileId: newId('fil') };
  let isPlaced = false;
  try {
    const received = receive(dependencies, session, { ...file, bytes }, body);
    const stored = await received.finally(() => place[Symbol.dispose]());
    if (isRejection(stored)) return stored;
    const content = { ...file, bytes: stored.bytes, sha256: stored.sha256 };
    const uploaded = await placeInFolder(dependencies, session, content);
    isPlaced = !isRejection(uploaded);
    return uploaded;
  } finally {
    // Not waited for, as it changes no answer; one that is lost ends with the time of the room.
    if (!isPlaced)
      askServer(dependencies, session, { ask: 'drop', ...file }).catch(() => undefined);
  }
}

type Stored = { bytes: number; sha256: string };
type Upload = { name: string; fileId: string };

/** Stores what arrives, where the session has the room. */
async function receive(
  dependencies: ApiDependencies,
  session: ActiveSession,
  upload: Upload & { bytes: number | null },
  body: Readable,
): Promise<Stored | Rejection> {
  const { name, fileId, bytes } = upload;
  const begun = await askServer(dependencies, session, { ask: 'begin', ...upload });
  if (begun.kind !== 'begun') return refusalOf(dependencies, session, name, begun);
  const excess = { reason: begun.limit, max: begun.bytesMax, of: 'bytes' } as const;
  const object = { key: fileKey(session, fileId), name, bytes };
  return store(dependencies.objects, object, body, excess, session.id);
}

async function store(
  objects: ApiDependencies['objects'],
  { key, name, bytes }: { key: string; name: string; bytes: number | null },
  body: Readable,
  excess: { reason: 'too_large' | 'quota'; max: number; of: 'bytes' },
  sessionId: string,
): Promise<Stored | Rejection> {
  let received = 0;
  let refusal: Rejection | null = null;
  async function* bounded() {
    try {
      for await (const piece of arriving(body)) {
        received += piece.length;
        if (received > excess.max) refusal = tooMuch(sessionId, name, excess);
        if (refusal !== null) throw new Error('the upload is too large');
        yield piece;
      }
    } catch (error) {
      const why = error instanceof TooSlow ? { message: error.message } : {};
      refusal ??=
        error instanceof Unreadable
          ? error.rejection
          : reject('FILE_INCOMPLETE', { name, bytes_received: received }, why);
      throw error;
    }
  }
  try {
    return await objects.put(key, bounded(), bytes === null ? {} : { bytes });
  } catch (error) {
    if (refusal !== null) return refusal;
    if (error instanceof ObjectStoreFull) return storeFullRejection(error);
    throw error;
  }
}

/** Has the server put what is stored into the folder. */
async function placeInFolder(
  dependencies: ApiDependencies,
  session: ActiveSession,
  content: Upload & Stored,
): Promise<Uploaded | Rejection> {
  const placed = await askToPlace(dependencies, session, content);
  if (placed.kind === 'placed') {
    const { path, isNew, at } = placed;
    return { file: { ...content, origin: 'upload', createdAt: at }, path, isNew };
  }
  const key = fileKey(session, content.fileId);
  if (placed.kind === 'refused') await dependencies.objects.remove(key).catch(() => undefined);
  return refusalOf(dependencies, session, content.name, placed);
}

/** @returns the server's last answer: `working` if that takes too long */
async function askToPlace(
  dependencies: ApiDependencies,
  session: ActiveSession,
  content: Upload & Stored,
): Promise<FileAnswer> {
  const givenUpAt = performance.now() + PLACE_MS;
  for (;;) {
    const answer = await askServer(dependencies, session, { ask: 'place', ...content });
    if (answer.kind !== 'working' || performance.now() > givenUpAt) return answer;
  }
}
