import { chownSync, copyFileSync, existsSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { BrowserUser } from './programs.ts';

/** A program and its arguments. */
export type Command = { program: string; args: string[] };

/** In the browser's folder. */
const FOLDER = 'locales';
const ENGLISH = 'en-US.pak';

/**
 * In a user namespace in which the browser's user is root, and so may mount; then in one in which
 * it is itself again, without any capability.
 */
const SCRIPT =
  'user=$3 group=$4; mount --bind "$1" "$2" && shift 4 && ' +
  'exec unshare --map-user="$user" --map-group="$group" -- "$@"';

type Wanted = { locale: string; folder: string; user: BrowserUser };

/**
 * Makes the folder that the browser sees in place of the one beside Chromium, if that one has no
 * texts for the locale: with the texts of its language, where they are installed, or else the
 * English ones. Before the browser's user can enter the browser's folder.
 * @throws Error where Chromium has no such folder
 */
export function makeLocaleFolder(chromium: string, { locale, folder, user }: Wanted): void {
  const shipped = shippedWith(chromium);
  if (isThere(shipped, locale)) return;
  const [language] = locale.split('-');
  const texts = [`${language}.pak`, ENGLISH].find((name) => existsSync(join(shipped, name)));
  if (texts === undefined)
    throw new Error(`${shipped} has no ${ENGLISH}, so pages cannot be in ${locale}`);
  const own = join(folder, FOLDER);
  const file = join(own, `${locale}.pak`);
  mkdirSync(own, { mode: 0o755 });
  copyFileSync(join(shipped, texts), file);
  if (user !== undefined) for (const path of [own, file]) chownSync(path, user.uid, user.gid);
}

/**
 * The command that runs Chromium with pages in a locale. Chromium takes that of its environment
 * only if the folder beside it has a file of the interface's texts under the locale's name.
 */
export function withLocale(command: Command, { locale, folder, user }: Wanted): Command {
  const shipped = shippedWith(command.program);
  if (isThere(shipped, locale)) return command;
  const { uid, gid } = user ?? { uid: process.getuid?.(), gid: process.getgid?.() };
  const own = join(folder, FOLDER);
  const asRoot = ['--map-root-user', '--mount', '--', 'sh', '-c', SCRIPT, 'sh', own, shipped];
  return {
    program: 'unshare',
    args: [...asRoot, String(uid), String(gid), command.program, ...command.args],
  };
}

/** English needs no file: Chromium takes it where it finds no other. */
function isThere(shipped: string, locale: string): boolean {
  return `${locale}.pak` === ENGLISH || existsSync(join(shipped, `${locale}.pak`));
}

function shippedWith(chromium: string): string {
  return join(dirname(realpathSync(chromium)), 'locales');
}
