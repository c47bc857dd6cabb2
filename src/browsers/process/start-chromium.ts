import { join } from 'node:path';
import type { BrowserSpec } from '../browsers.ts';
import {
  type CdpEndpoint,
  chromiumEnvironment,
  chromiumFlags,
  extensionFlags,
  parseListening,
} from '../chromium/flags.ts';
import { EXTENSIONS_FOLDER } from './browser-folder.ts';
import { type Child, startChild } from './child.ts';
import { withLocale } from './locale.ts';
import type { BrowserUser } from './programs.ts';

/** Chromium's cache of what it has loaded; the folder may be in memory. A container's has 51 MB. */
const CACHE_BYTES_MAX = 64 * 1024 ** 2;

/**
 * Starts Chromium with one blank page, at a port of its choice.
 * @returns the process, and its CDP endpoint once it has printed that
 */
export function startChromium(
  program: string,
  spec: BrowserSpec,
  place: {
    folder: string;
    env: Record<string, string>;
    user: BrowserUser;
    proxyPort?: number | null;
  },
): { child: Child; listening: Promise<CdpEndpoint> } {
  const listening = Promise.withResolvers<CdpEndpoint>();
  const args = [
    '--remote-debugging-port=0',
    `--user-data-dir=${place.folder}/profile`,
    `--disk-cache-size=${CACHE_BYTES_MAX}`,
    ...extensionFlags(spec, join(place.folder, EXTENSIONS_FOLDER)),
    ...chromiumFlags(spec, place.proxyPort),
  ];
  const plain = { program, args };
  const { locale } = spec;
  const command = locale === undefined ? plain : withLocale(plain, { ...place, locale });
  const child = startChild(command.program, command.args, {
    env: { ...place.env, ...chromiumEnvironment(spec) },
    cwd: place.folder,
    user: place.user,
    onLine: (line) => {
      const endpoint = parseListening(line);
      if (endpoint !== null) listening.resolve(endpoint);
    },
  });
  return { child, listening: listening.promise };
}
