import type Docker from 'dockerode';
import type { BrowserSpec } from '../../browsers.ts';
import type { ExtensionSource } from '../../extensions/extension-source.ts';
import { extensionsTar } from '../../extensions/unpack.ts';
import { putTar } from './archive.ts';

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
export function putExtensions(
  container: Docker.Container,
  extensions: readonly ExtensionSource[],
  signal: AbortSignal,
): Promise<void> {
  return putTar(container, extensionsTar(extensions), EXTENSIONS_FOLDER, signal);
}
