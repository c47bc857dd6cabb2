import { Type, type Static } from 'typebox';
import { UserId } from '../fields.ts';

/** Extensions that one session's browser has at most. */
export const sessionExtensionsMax = 8;
/** Extensions of an organization: each of its events carries all of its state. */
export const organizationExtensionsMax = 50;

/** Its id is made of the bytes that were uploaded: the same ones have the same id. */
export const ExtensionId = Type.String({
  pattern: '^ext_[0-9a-f]{32}$',
  description: 'id of an extension: `ext_` and the first half of the SHA-256 of its zip, in hex',
});

/** An extension of an organization. Its zip is in the object store, never in an event. */
export const Extension = Type.Object({
  extensionId: ExtensionId,
  name: Type.String({ minLength: 1, maxLength: 128, description: 'as its manifest names it' }),
  version: Type.String({ minLength: 1, maxLength: 64, description: 'as its manifest has it' }),
  bytes: Type.Integer({ minimum: 1, description: 'size of its zip' }),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of its zip, in hex' }),
  uploadedAt: Type.String({ description: 'ISO 8601 UTC, milliseconds' }),
  by: UserId,
});
export type Extension = Static<typeof Extension>;

export const extensionEvents = {
  'organization.extension-uploaded': Extension,
  'organization.extension-removed': Type.Object({ extensionId: ExtensionId, by: UserId }),
};

/** The extensions of one session's browser. */
export const SessionExtensions = Type.Array(ExtensionId, {
  minItems: 1,
  maxItems: sessionExtensionsMax,
  description: 'ids of the extensions that the browser is launched with',
});
