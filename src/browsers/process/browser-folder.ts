import { execFile } from 'node:child_process';
import { chownSync, existsSync, lstatSync, mkdtempSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { BrowserSpec } from '../browsers.ts';
import { unpackInto } from '../extensions/unpack.ts';
import { writeCookie, writeKeymap, writePassword } from './display.ts';
import { makeDownloadsFolder } from './folders.ts';
import { makeLocaleFolder } from './locale.ts';
import type { BrowserUser } from './programs.ts';
import { writePreferences } from './preferences.ts';
import { makeProfileFolder, unpackProfile } from './profile-folder.ts';

const PREFIX = 'bss-browser-';
/** In the browser's folder. */
export const EXTENSIONS_FOLDER = 'extensions';

/** Makes an empty folder for a browser, which only this process's user can enter. */
export function makeBrowserFolder(tmp: string): string {
  return mkdtempSync(join(tmp, PREFIX));
}

type Filling = { user: BrowserUser; chromium: string; hasDisplay: boolean; signal: AbortSignal };

/**
 * Puts all that this process writes into a browser's folder, and gives that to the browser's user
 * then: until the end no other user can enter it, and replace a folder in it by a link.
 */
export async function fillFolder(
  folder: string,
  spec: BrowserSpec,
  { user, chromium, hasDisplay, signal }: Filling,
): Promise<void> {
  if (hasDisplay) {
    writeCookie(folder, user);
    writeKeymap(folder, user);
    writePassword(folder, spec.vncPassword, user);
  }
  await makeDownloadsFolder(folder, user);
  if (spec.profile?.tar != null) makeProfileFolder({ folder, user });
  if (spec.locale !== undefined) makeLocaleFolder(chromium, { locale: spec.locale, folder, user });
  const extensions = join(folder, EXTENSIONS_FOLDER);
  if (spec.extensions !== undefined)
    await unpackInto(extensions, spec.extensions, { owner: user, signal });
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
}

/** Fills the profile as the browser's user, whose folder it is by now. */
export async function prepareProfile(
  { profile }: BrowserSpec,
  place: { folder: string; user: BrowserUser },
  signal: AbortSignal,
): Promise<void> {
  const tar = profile?.tar ?? null;
  if (tar !== null) await unpackProfile(tar, place, signal);
  await writePreferences(join(place.folder, 'profile'), place.user);
}

/**
 * Removes a browser's folder, its content as the folder's owner. That is the browser's user: a link
 * that a page left there must not make root remove other files. It is this process's user where a
 * launch failed before the browser's user could enter.
 * @throws Error where it is no browser's folder, or cannot be removed
 */
export async function removeBrowserFolder(folder: string, user: BrowserUser): Promise<void> {
  if (!basename(folder).startsWith(PREFIX)) throw new Error(`not a browser's folder: ${folder}`);
  if (!existsSync(folder)) return;
  const owner = lstatSync(folder).uid === user?.uid ? user : undefined;
  const clean = promisify(execFile)('/bin/rm', ['-rf', '--', folder], { cwd: '/', ...owner });
  // That user may not be allowed to remove the folder itself.
  await clean.catch(() => {});
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}
