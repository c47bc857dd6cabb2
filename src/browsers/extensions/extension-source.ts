import { extensionKey } from '#src/browsers/extensions/read-extension.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';

/** An extension that a browser is launched with. */
export type ExtensionSource = {
  id: string;
  /** @throws Error if it has been removed since; ObjectStoreUnavailable */
  zip(): Promise<Buffer>;
};

export type ExtensionsOf = (organizationId: string, ids: readonly string[]) => ExtensionSource[];

/** The extensions of a session, read from the object store when the browser is launched. */
export function createExtensionsOf(objects: Pick<ObjectStore, 'get'>): ExtensionsOf {
  const source = (organizationId: string, id: string): ExtensionSource => ({
    id,
    async zip() {
      const found = await objects.get(extensionKey(organizationId, id));
      if (found === null) throw new Error(`the extension ${id} has been removed`);
      return Buffer.concat(await Array.fromAsync(found.body));
    },
  });
  return (organizationId, ids) => ids.map((id) => source(organizationId, id));
}
