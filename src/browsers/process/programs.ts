import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { BrowserBuild } from '../browsers.ts';
import { parseVersion } from '../chromium/program-version.ts';

/** Unix socket paths have at most 107 characters; below the temporary folder the longest has 64. */
const TMP_PATH_CHARS_MAX = 40;

/** Where Linux keeps files in memory, for every user. */
const MEMORY_FOLDER = '/dev/shm';
/** From statfs(2): the files are in memory. */
const TMPFS = 0x01_02_19_94;
/** A waiting browser has 2.5 MB of files, one in use perhaps a hundred. */
const MEMORY_BYTES_MIN = 2 * 1024 ** 3;

/** Chromium's `--version` takes 200 ms; a program that hangs must not delay the start for long. */
const VERSION_MS = 2_000;

export type Programs = {
  chromium: string;
  xvnc: string;
  /** Null or absent: browsers have no WebDriver. */
  chromedriver?: string | null;
};

/** The user of the browsers; undefined: the service's own. */
export type BrowserUser = { uid: number; gid: number } | undefined;

/** Browsers cannot run on this host; the message says what is missing and how to install it. */
export class BrowsersUnavailable extends Error {
  override readonly name = 'BrowsersUnavailable';
}

const WHERE_FROM: Record<'chromium' | 'xvnc', string> = {
  chromium: 'Chromium (Debian: apt-get install chromium)',
  xvnc: 'Xtigervnc (Debian: apt-get install tigervnc-standalone-server)',
};

/**
 * Finds the programs as the user that will run them.
 * @param wanted names or paths
 * @returns their absolute paths; the driver's is null where it is missing
 * @throws BrowsersUnavailable
 */
export async function findPrograms(wanted: Programs, user: BrowserUser): Promise<Programs> {
  if (process.platform !== 'linux') {
    throw new BrowsersUnavailable('Browsers as plain processes need Linux: use Docker browsers.');
  }
  const names = ['chromium', 'xvnc'] as const;
  const found = await Promise.all(names.map((name) => findProgram(wanted[name], user)));
  const missing = names.filter((_, index) => found[index] === null);
  if (missing.length > 0) {
    const list = missing.map((name) => `${WHERE_FROM[name]}, looked for as "${wanted[name]}"`);
    throw new BrowsersUnavailable(
      `Missing or not executable for ${nameOf(user)}: ${list.join('; ')}.`,
    );
  }
  const [chromium = '', xvnc = ''] = found.map(String);
  const driver = wanted.chromedriver ?? null;
  return { chromium, xvnc, chromedriver: driver && (await findProgram(driver, user)) };
}

/**
 * Prepares the folders that browsers share.
 * @returns the folder in which each browser gets its own
 * @throws BrowsersUnavailable
 */
export async function prepareFolders(user: BrowserUser): Promise<string> {
  // Not the service's own user: when that logs out, systemd removes its files in /dev/shm.
  const isFree = user !== undefined && process.env['TMPDIR'] === undefined;
  const folder = (isFree ? inMemory(MEMORY_FOLDER, MEMORY_BYTES_MIN) : null) ?? tmpdir();
  if (folder.length > TMP_PATH_CHARS_MAX) {
    throw new BrowsersUnavailable(
      `The path of the temporary folder, ${folder}, is too long for sockets below it: ` +
        `set TMPDIR to one of at most ${TMP_PATH_CHARS_MAX} characters.`,
    );
  }
  if ((await shell('test -x "$1"', folder, user)) === null) {
    throw new BrowsersUnavailable(
      `The temporary folder, ${folder}, cannot be entered by ${nameOf(user)}: set TMPDIR.`,
    );
  }
  // Shared by X servers of several users: the first server to create it would own it.
  if (process.getuid?.() === 0 && !existsSync('/tmp/.X11-unix')) {
    mkdirSync('/tmp/.X11-unix');
    chmodSync('/tmp/.X11-unix', 0o1777);
  }
  return folder;
}

/**
 * The folder, if its files are in memory and it has room for so many bytes; else null. On a disk
 * the files of a launch cost 30 ms and an eighth of its processor time.
 */
export function inMemory(folder: string, bytesMin: number): string | null {
  try {
    const { type, bavail, bsize } = statfsSync(folder);
    return type === TMPFS && bavail * bsize >= bytesMin ? folder : null;
  } catch {
    return null;
  }
}

/** Chromium's version as it prints it, and the date of its file, which is that of its release. */
export async function readBuild(chromium: string, user: BrowserUser): Promise<BrowserBuild> {
  const program = spawn(chromium, ['--version'], {
    cwd: '/',
    // A group of its own: the program may be a script, whose children end with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    ...user,
  });
  const kill = () => program.pid !== undefined && process.kill(-program.pid, 'SIGKILL');
  const late = setTimeout(kill, VERSION_MS);
  const ended = once(program, 'close').catch(() => undefined);
  const output = await text(program.stdout).catch(() => '');
  await ended;
  clearTimeout(late);
  const version = parseVersion(output) ?? 'unknown';
  return { version, builtAt: Math.round(statSync(chromium).mtimeMs) };
}

async function findProgram(wanted: string, user: BrowserUser): Promise<string | null> {
  const script = 'p=$(command -v -- "$1") && test -f "$p" && test -x "$p" && printf %s "$p"';
  const path = await shell(script, wanted, user);
  return path?.startsWith('/') === true ? path : null;
}

/** The output of a shell script that runs as the user; null if it fails. */
async function shell(script: string, argument: string, user: BrowserUser): Promise<string | null> {
  try {
    const run = promisify(execFile);
    const args = ['-c', script, 'sh', argument];
    const { stdout } = await run('/bin/sh', args, { cwd: '/', timeout: 10_000, ...user });
    return stdout;
  } catch {
    return null;
  }
}

function nameOf(user: BrowserUser): string {
  return user === undefined ? 'this user' : `user id ${user.uid}`;
}
