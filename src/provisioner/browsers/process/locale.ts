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

/**
 * The command that runs Chromium with pages in a locale. Chromium takes that of its environment
 * only if the folder beside it has a file of the interface's texts under the locale's name: this
 * browser sees a folder with such a file in place of that one. The texts are those of the
 * language, where they are installed, or else the English ones.
 * @throws Error where Chromium has no such folder
 */
export function withLocale(
  command: Command,
  { locale, folder, user }: { locale: string; folder: string; user: BrowserUser },
): Command {
  const shipped = join(dirname(realpathSync(command.program)), 'locales');
  const file = `${locale}.pak`;
  if (existsSync(join(shipped, file))) return command;
  const [language] = locale.split('-');
  const texts = [`${language}.pak`, ENGLISH].find((name) => existsSync(join(shipped, name)));
  if (texts === undefined)
    throw new Error(`${shipped} has no ${ENGLISH}, so pages cannot be in ${locale}`);
  const own = join(folder, FOLDER);
  mkdirSync(own, { mode: 0o755 });
  copyFileSync(join(shipped, texts), join(own, file));
  if (user !== undefined)
    for (const path of [own, join(own, file)]) chownSync(path, user.uid, user.gid);
  const { uid, gid } = user ?? { uid: process.getuid?.(), gid: process.getgid?.() };
  const asRoot = ['--map-root-user', '--mount', '--', 'sh', '-c', SCRIPT, 'sh', own, shipped];
  return {
    program: 'unshare',
    args: [...asRoot, String(uid), String(gid), command.program, ...command.args],
  };
}
