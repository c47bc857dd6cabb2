import type Docker from 'dockerode';
import type { BrowserSpec } from '../../browsers.ts';
import type { ExtensionSource } from '../../../extensions/extension-source.ts';
import { extensionsTar } from '../../../extensions/unpack.ts';

/** Where a container has its browser's extensions. */
export const EXTENSIONS_FOLDER = '/extensions';

/** A volume without a name is the container's own, and removed with it. */
export function extensionMounts({ extensions }: BrowserSpec): Docker.MountSettings[] {
  return extensions === undefined
    ? []
    : [{ Type: 'volume', Target: EXTENSIONS_FOLDER, Source: '' }];
}

/**
 * Unpacks extensions into the volume of a container that has not started. Its files are root's, and
 * no program in the container is: the browser reads them and cannot change them.
 * @throws what reading an extension throws; the signal's reason; the engine's error
 */
export async function putExtensions(
  container: Docker.Container,
  extensions: readonly ExtensionSource[],
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController();
  const tar = extensionsTar(extensions, (error) => failed.abort(error));
  const ended = AbortSignal.any([failed.signal, signal]);
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(ended.reason as Error);
  ended.addEventListener('abort', onAbort, { once: true });
  const putting = container.putArchive(tar, { path: EXTENSIONS_FOLDER, abortSignal: ended });
  putting.catch(() => undefined); // after an abort the client may never settle it, or fail late
  try {
    await Promise.race([putting, aborted]);
  } finally {
    ended.removeEventListener('abort', onAbort);
    tar.destroy();
  }
}
