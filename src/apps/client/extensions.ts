import type { Static } from 'typebox';
import type * as schemas from '#src/features/extensions/routes/schemas.ts';
import type { CallOptions, Requester } from './requester.ts';

export type Extension = Static<typeof schemas.Extension>;

/** The organization's browser extensions; sessions name them at create (`extensions: [id]`). */
export type Extensions = {
  /**
   * Uploads a zip or a CRX. The same bytes are the same extension, so it may be repeated.
   * @throws ServiceError, whose `error` is INVALID_EXTENSION if it is none; NoAnswer
   */
  upload(bytes: Blob | Uint8Array<ArrayBuffer>, options?: CallOptions): Promise<Extension>;
  /** All of them, oldest first. @throws ServiceError, NoAnswer */
  list(options?: CallOptions): Promise<Extension[]>;
  /** @throws ServiceError, NoAnswer */
  get(id: string, options?: CallOptions): Promise<Extension>;
  /** No other session gets it. @throws ServiceError, NoAnswer */
  remove(id: string, options?: CallOptions): Promise<void>;
};

const PATH = '/api/extensions';
const pathOf = (id: string) => `${PATH}/${encodeURIComponent(id)}`;

export function createExtensions(requester: Requester): Extensions {
  return {
    upload(bytes, options) {
      const headers = { 'content-type': 'application/zip' };
      return requester.json({ method: 'POST', path: PATH, bytes, headers, ...options });
    },
    async list(options) {
      const request = { method: 'GET', path: PATH, ...options } as const;
      const listed = await requester.json<Static<typeof schemas.ExtensionList>>(request);
      return listed.extensions;
    },
    get: (id, options) => requester.json({ method: 'GET', path: pathOf(id), ...options }),
    remove: (id, options) =>
      requester.read({ method: 'DELETE', path: pathOf(id), ...options }, async () => undefined),
  };
}
