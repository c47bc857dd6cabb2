import { Type, type Static } from 'typebox';
import { Moment } from '../fields.ts';

/** How a file came into a session's folder. */
export const FileOrigin = Type.Union([Type.Literal('download'), Type.Literal('upload')], {
  description: 'download: the browser saved it; upload: a client put it there',
});
export type FileOrigin = Static<typeof FileOrigin>;

/** Why a file is not in the session's folder. */
export const FileRefusal = Type.Union(
  [Type.Literal('too_large'), Type.Literal('quota'), Type.Literal('name'), Type.Literal('failed')],
  {
    description:
      'too_large: it is larger than one file may be; quota: the session’s files together are, or ' +
      'all that its organization stores; name: it has no usable name; ' +
      'failed: it was cancelled or broken off, or could not be stored',
  },
);
export type FileRefusal = Static<typeof FileRefusal>;

const FileName = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'its safe name in the folder, at most 255 bytes of UTF-8, in normal form C',
});
const Guid = Type.String({
  maxLength: 64,
  description: 'of a download: as CDP tells it in `Browser.downloadWillBegin`',
});
const Bytes = Type.Integer({ minimum: 0, description: 'its length in bytes' });

/** Files of a session: what is known about them, never what is in them. */
export const fileEvents = {
  'session.file-added': Type.Object({
    fileId: Type.String({
      pattern: '^[A-Za-z0-9_-]{1,64}$',
      description: 'this content under this name; the object store has it under this id',
    }),
    name: FileName,
    bytes: Bytes,
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of it, hexadecimal' }),
    origin: FileOrigin,
    guid: Type.Optional(Guid),
    at: Moment,
  }),
  'session.file-removed': Type.Object({ name: FileName, at: Moment }),
  'session.file-refused': Type.Object({
    name: FileName,
    origin: FileOrigin,
    reason: FileRefusal,
    bytes: Type.Optional(Bytes),
    guid: Type.Optional(Guid),
    at: Moment,
  }),
};

/** The types of the events that a session's files are folded from. */
export const fileChanges: ReadonlySet<string> = new Set([
  'session.file-added',
  'session.file-removed',
]);

/** Files that a session may have at a time. */
export const filesMax = 1_000;
