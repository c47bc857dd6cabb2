import type { FileOrigin } from '#events/session/files.ts';
import type { SessionEvent } from '#events/session.ts';

/** A file of a session, as its events tell. */
export type SessionFile = {
  fileId: string;
  name: string;
  bytes: number;
  /** 64 hexadecimal digits. */
  sha256: string;
  origin: FileOrigin;
  /** ISO 8601. */
  createdAt: string;
};

/** A session's files by their names. */
export type SessionFiles = ReadonlyMap<string, SessionFile>;

/** The files after the event; one that tells of no file changes nothing. */
export function filesAfter(files: SessionFiles, event: SessionEvent): SessionFiles {
  if (event.type === 'session.file-added') {
    const { at, guid: _, ...file } = event.data;
    return new Map(files).set(file.name, { ...file, createdAt: at });
  }
  if (event.type !== 'session.file-removed') return files;
  const left = new Map(files);
  left.delete(event.data.name);
  return left;
}

/** The files in the order in which they came, and by name where two came at once. */
export function inOrder(files: SessionFiles): SessionFile[] {
  const rank = ({ createdAt, name }: SessionFile) => `${createdAt} ${name}`;
  return [...files.values()].toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1));
}

/** The key of a file's content in the object store. */
export function fileKey(
  { organizationId, id }: { organizationId: string; id: string },
  fileId: string,
): string {
  return `${filesPrefix({ organizationId, id })}${fileId}`;
}

/** What the keys of all files of a session begin with. */
export function filesPrefix({ organizationId, id }: { organizationId: string; id: string }) {
  return `files/${organizationId}/${id}/`;
}
