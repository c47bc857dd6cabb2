/** Subjects of the stream OBJECTS, the only place where they are built and parsed. */

export const OBJECTS_STREAM = 'OBJECTS';
export const OBJECTS_SUBJECTS = ['obj.>'];

/** Segments of a key: the kind, the organization's id and up to four more. */
export const KEY_SEGMENTS_MAX = 6;

/** How many bytes an organization has stored, and is storing. */
export function accountSubject(organizationId: string): string {
  return `obj.account.${organizationId}`;
}

export const ALL_ACCOUNTS = 'obj.account.*';

/** The message that describes an object; the last one on this subject holds. */
export function headSubject(key: string): string {
  return `obj.head.${tokens(key)}`;
}

/** The heads of all objects whose keys begin with the prefix, which ends with `/`. */
export function headsFilter(prefix: string): string {
  return `obj.head.${tokens(prefix)}>`;
}

/** One chunk of the bytes that one put has stored. */
export function chunkSubject(key: string, put: string, chunk: number): string {
  return `obj.chunk.${tokens(key)}.${put}.${chunk}`;
}

/** All chunks of one put. */
export function chunksFilter(key: string, put: string): string {
  return `obj.chunk.${tokens(key)}.${put}.*`;
}

export const ALL_CHUNKS = 'obj.chunk.>';

/** The key of a head's subject. */
export function keyOfHead(subject: string): string {
  return subject.split('.').slice(2).join('/');
}

/** The object and the put that a chunk belongs to. */
export function putOfChunk(subject: string): { key: string; put: string } {
  const parts = subject.split('.');
  return { key: parts.slice(2, -2).join('/'), put: parts.at(-2) ?? '' };
}

function tokens(key: string): string {
  return key.replaceAll('/', '.');
}
