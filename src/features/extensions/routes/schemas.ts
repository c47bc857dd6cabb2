import { Type } from 'typebox';
import type { Extension as StoredExtension } from '#events/organization/extension.ts';

const ID = 'ext_9c56cc51b374c3ba189210d5b6d4bf57';

export const ExtensionPath = Type.Object({
  id: Type.String({ maxLength: 100, description: 'id of the extension', examples: [ID] }),
});

export const Extension = Type.Object(
  {
    id: Type.String({ description: 'made of its bytes', examples: [ID] }),
    name: Type.String({ description: 'as its manifest names it', examples: ['Consent banners'] }),
    version: Type.String({ description: 'as its manifest has it', examples: ['1.4.0'] }),
    bytes: Type.Integer({ description: 'size of its zip', examples: [48_211] }),
    sha256: Type.String({
      description: 'SHA-256 of its zip, in hex',
      examples: ['9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab'],
    }),
    uploaded_at: Type.String({
      format: 'date-time',
      description: 'when it was uploaded',
      examples: ['2026-01-01T00:00:00.000Z'],
    }),
    user_id: Type.String({ description: 'user that uploaded it', examples: ['user_1'] }),
  },
  { title: 'Extension' },
);

export const ExtensionList = Type.Object(
  { extensions: Type.Array(Extension) },
  { title: 'ExtensionList' },
);

export function presentExtension(extension: StoredExtension) {
  const { extensionId: id, name, version, bytes, sha256, uploadedAt, by } = extension;
  return { id, name, version, bytes, sha256, uploaded_at: uploadedAt, user_id: by };
}
