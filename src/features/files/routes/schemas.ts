import { Type, type Static } from 'typebox';
import type { SessionFile } from '#src/kernel/domain/session/files.ts';
import { Timestamp, Words } from '#src/roles/api/schemas/fields.ts';

/** Schemas of the files of a session. */

const EXAMPLE = {
  name: 'report.pdf',
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  at: '2026-11-20T09:31:00.000Z',
};

const fileFields = {
  name: Type.String({
    examples: [EXAMPLE.name],
    description: 'unique in the session, at most 255 bytes of UTF-8',
  }),
  bytes: Type.Integer({ minimum: 0, examples: [48_213] }),
  sha256: Type.String({ examples: [EXAMPLE.sha256], description: 'of its content, hexadecimal' }),
  created_at: Timestamp(EXAMPLE.at),
  origin: Words(['download', 'upload'], {
    title: 'FileOrigin',
    examples: ['download'],
    description: 'download: the browser saved it; upload: a client put it there',
  }),
};

export const SessionFileInfo = Type.Object(fileFields, { title: 'SessionFile' });

export const SessionFileList = Type.Object(
  { files: Type.Array(SessionFileInfo) },
  { title: 'SessionFileList' },
);

export const UploadedFile = Type.Object(
  {
    ...fileFields,
    path: Type.String({
      examples: ['/home/browser/downloads/report.pdf'],
      description:
        'the file in the browser’s own file system: for `DOM.setFileInputFiles` and ' +
        'Playwright’s `setInputFiles`',
    }),
  },
  { title: 'UploadedFile' },
);

export const FilePath = Type.Object({
  id: Type.String({ description: 'the session’s id' }),
  name: Type.String({ description: 'the file’s name, percent-encoded' }),
});

/** A file as every answer has it. */
export function presentFile(file: SessionFile): Static<typeof SessionFileInfo> {
  const { name, bytes, sha256, createdAt, origin } = file;
  return { name, bytes, sha256, created_at: createdAt, origin };
}
