/**
 * The programs that the service runs: found on this machine, or installed. The table below lists
 * where each is searched, in which version, and how it is installed.
 */
import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { open, realpath, rm, symlink } from 'node:fs/promises';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { aptArchives, aptCommand, aptInstall } from './apt.ts';
import { refusalOf } from './consent.ts';
import { fetchNatsServer } from './fetch-nats-server.ts';
import { waitForLock } from '../pid-lock.mjs';
import { runCommand } from '../run-command.ts';
import { toolFolder, toolFolders, toolName } from './tool-folder.mjs';

export type ProgramName =
  | 'nats-server'
  | 'redis-server'
  | 'chromium'
  | 'Xtigervnc'
  | 'chromedriver';

/**
 * Programs are missing and cannot be installed; the message has names, reasons and remedies.
 */
export class MissingProgram extends Error {
  override readonly name = 'MissingProgram';
}

/**
 * The absolute path of each program, after installing those that are missing; `print` gets what is
 * installed and from where. What needs root is asked for once for all of them (consent.ts), and
 * `ending` ends that question. A path in the program's environment variable is taken as it is.
 * @throws MissingProgram
 */
export async function ensurePrograms<N extends ProgramName>(
  names: readonly N[],
  print: (line: string) => void,
  ending?: AbortSignal,
): Promise<Record<N, string>> {
  const paths: Partial<Record<N, string>> = {};
  for (const name of names) {
    const found = (await fromEnvironment(name)) ?? (await find(name));
    if (found.path !== null) paths[name] = found.path;
  }
  const missing = names.filter((name) => paths[name] === undefined);
  if (missing.length === 0) return paths as Record<N, string>;
  const refusal = await refusalFor(missing, print, ending);
  const problems: string[] = [];
  const unlock = await lockTools(print);
  try {
    const failures = refusal === null ? await installPackagesOf(missing, print) : null;
    for (const name of missing) {
      const found = await findOrInstall(name, refusal ?? failures?.get(name) ?? null, print);
      if ('path' in found) paths[name] = found.path;
      else problems.push(found.problem);
    }
  } finally {
    unlock?.();
  }
  if (problems.length > 0) throw new MissingProgram(problems.join('\n'));
  return paths as Record<N, string>;
}

/**
 * The absolute path of a program that the service can do without; null: it is missing.
 * @throws MissingProgram where its environment variable names no program
 */
export async function findProgram(name: ProgramName): Promise<string | null> {
  return ((await fromEnvironment(name)) ?? (await find(name))).path;
}

type Program = {
  /** Environment variable that names its path. */
  variable: string;
  /** Paths searched before PATH; relative ones are below the folders of tools. */
  places: readonly string[];
  /** Its names on PATH. */
  names: readonly string[];
  purpose: string;
  /** How to install it by hand. */
  byHand: string;
  /** Debian packages that are to be installed as root. */
  packages: () => readonly string[];
  /** What is to be done beside or after that. */
  install?: (print: (line: string) => void) => Promise<void>;
  /** Why a found file is not suitable; null: it is. */
  refuses?: (path: string) => Promise<string | null>;
};

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const LOCK_WAIT_MS = 15 * 60_000;
/** 2.11 and 2.12 added message TTLs, atomic batches and message schedules. */
const NATS_SERVER_MIN: readonly [number, number] = [2, 12];
const NATS_FOLDER = toolName('nats-server', NATS_SERVER_MIN.join('.'));
const REDIS_PROGRAM = '/usr/bin/redis-check-rdb';
/** PATH of an ordinary user often lacks the sbin folders, and macOS's lacks Homebrew's. */
const MORE_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/opt/homebrew/bin'];

const PROGRAMS: Record<ProgramName, Program> = {
  'nats-server': {
    variable: 'NATS_SERVER',
    places: [join(NATS_FOLDER, 'nats-server'), 'nats/nats-server'],
    names: ['nats-server'],
    purpose: 'the event store',
    byHand: 'get a release from https://github.com/nats-io/nats-server/releases',
    packages: () => [],
    install: (print) =>
      fetchNatsServer(
        join(toolFolder(ROOT), NATS_FOLDER),
        async (path) => (await refusesNatsServer(path)) === null,
        print,
      ),
    refuses: refusesNatsServer,
  },
  'redis-server': {
    variable: 'REDIS_SERVER',
    places: ['redis/redis-server'],
    names: ['redis-server'],
    purpose: 'the read models',
    byHand: aptCommand(['redis-server']),
    packages: () => (existsSync(REDIS_PROGRAM) ? [] : ['redis-tools']),
    install: linkRedisServer,
  },
  chromium: {
    variable: 'CHROMIUM',
    // The binary itself: the wrapper script on Debian's PATH adds flags and starts a shell.
    places: [
      '/usr/lib/chromium/chromium',
      '/usr/lib64/chromium-browser/chromium-browser',
      '/opt/google/chrome/chrome',
      '/Applications/Chromium.app/Contents/MacOS/Chromium',
      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    ],
    names: ['chromium', 'chromium-browser', 'chrome'],
    purpose: 'the browsers, with fonts',
    ...debian(['chromium', 'chromium-driver', 'fonts-liberation', 'fonts-dejavu-core']),
    refuses: refusesChromium,
  },
  Xtigervnc: {
    variable: 'XTIGERVNC',
    places: [],
    names: ['Xtigervnc'],
    purpose: 'the screens of browsers',
    ...debian(['tigervnc-standalone-server']),
  },
  chromedriver: {
    variable: 'CHROMEDRIVER',
    places: [],
    names: ['chromedriver'],
    purpose: 'WebDriver',
    ...debian(['chromium-driver']),
  },
};

function debian(packages: readonly string[]): Pick<Program, 'byHand' | 'packages'> {
  return { byHand: aptCommand(packages), packages: () => packages };
}

/**
 * Debian's redis-server package starts a service on the machine's port 6379. All it has that
 * redis-tools lacks is a link: the program is one file that does what its name says.
 */
async function linkRedisServer(): Promise<void> {
  const link = join(toolFolder(ROOT), 'redis', 'redis-server');
  mkdirSync(dirname(link), { recursive: true });
  await rm(link, { force: true });
  await symlink(REDIS_PROGRAM, link);
  const outcome = await runCommand([link, '--version'], { timeoutMs: 10_000 });
  if (!outcome.output.startsWith('Redis server'))
    throw new Error(`${REDIS_PROGRAM} is not a redis-server`);
}

async function refusesNatsServer(path: string): Promise<string | null> {
  const outcome = await runCommand([path, '--version'], { timeoutMs: 10_000 });
  const [, major, minor, patch] = /v?(\d+)\.(\d+)\.(\d+)/.exec(outcome.output) ?? [];
  if (outcome.code !== 0 || major === undefined) return `${path} does not run`;
  const [majorMin, minorMin] = NATS_SERVER_MIN;
  const isNewEnough =
    Number(major) > majorMin || (Number(major) === majorMin && Number(minor) >= minorMin);
  if (isNewEnough) return null;
  return `${path} is ${major}.${minor}.${patch}; ${NATS_SERVER_MIN.join('.')} or later is required`;
}

/** Refuses wrapper scripts, and snaps, which see another file system. */
async function refusesChromium(path: string): Promise<string | null> {
  if (basename(await realpath(path)) === 'snap') return `${path} is a snap`;
  await using file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
  return buffer.toString() === '#!' ? `${path} is a wrapper script` : null;
}

type Found = { path: string | null; refusals: string[] };

/** @throws MissingProgram naming the variable, if its path is not suitable */
async function fromEnvironment(name: ProgramName): Promise<Found | null> {
  const { variable, refuses } = PROGRAMS[name];
  const given = process.env[variable];
  if (given === undefined || given === '') return null;
  const path = resolve(given);
  if (!isProgram(path)) throw new MissingProgram(`${variable}: ${path} is not a program`);
  // An operator may choose a wrapper script of Chromium; a too old version would fail later.
  const refusal = name === 'chromium' ? null : await refuses?.(path);
  if (refusal) throw new MissingProgram(`${variable}: ${refusal}`);
  return { path, refusals: [] };
}

async function find(name: ProgramName): Promise<Found> {
  const { places, names, refuses } = PROGRAMS[name];
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...MORE_FOLDERS];
  const candidates = [
    ...places.flatMap((place) => toolFolders(ROOT).map((tools) => resolve(tools, place))),
    ...folders.filter(Boolean).flatMap((folder) => names.map((file) => resolve(folder, file))),
  ];
  const refusals: string[] = [];
  for (const path of new Set(candidates)) {
    if (!isProgram(path)) continue;
    const refusal = (await refuses?.(path)) ?? null;
    if (refusal === null) return { path, refusals };
    refusals.push(refusal);
  }
  return { path: null, refusals };
}

/** Why the packages of these programs may not be installed; null: they may, or need not be. */
async function refusalFor(
  names: readonly ProgramName[],
  print: (line: string) => void,
  ending?: AbortSignal,
): Promise<string | null> {
  const parts = names.flatMap((name) => {
    const packages = PROGRAMS[name].packages();
    return packages.length > 0 ? [{ purpose: PROGRAMS[name].purpose, packages }] : [];
  });
  if (parts.length === 0) return null;
  const archives = await aptArchives();
  const from = archives.length > 0 ? archives.join(', ') : 'the archives of this system';
  return await refusalOf({ parts, from, byHand: aptCommand(packagesOf(names)) }, print, ending);
}

function packagesOf(names: readonly ProgramName[]): string[] {
  return [...new Set(names.flatMap((name) => PROGRAMS[name].packages()))];
}

/** @returns why the packages of these programs could not be installed; others were, if need be */
async function installPackagesOf(
  names: readonly ProgramName[],
  print: (line: string) => void,
): Promise<ReadonlyMap<ProgramName, string>> {
  const failures = new Map<ProgramName, string>();
  const missing: ProgramName[] = [];
  // The previous holder of the lock may have installed some.
  for (const name of names) if ((await find(name)).path === null) missing.push(name);
  const packages = packagesOf(missing);
  if (packages.length === 0) return failures;
  print(`Installing ${packages.join(' ')}…`);
  const failure = await aptInstall(packages).then(() => null, messageOf);
  if (failure === null) return failures;
  // A package that the machine's lists lack must not keep back those of the other programs.
  for (const name of missing) {
    const own = packagesOf([name]);
    if (own.length === 0) continue;
    const isAll = own.length === packages.length;
    const why = isAll ? failure : await aptInstall(own).then(() => null, messageOf);
    if (why !== null) failures.set(name, why);
  }
  return failures;
}

/** @param failure why its packages were not installed */
async function findOrInstall(
  name: ProgramName,
  failure: string | null,
  print: (line: string) => void,
): Promise<{ path: string } | { problem: string }> {
  const { variable, byHand, packages, install } = PROGRAMS[name];
  const before = await find(name);
  if (before.path !== null) return { path: before.path };
  const lacking = packages().length > 0 ? failure : null;
  let reason = lacking ?? 'the installed program was not found';
  if (lacking === null && install !== undefined) {
    print(`Installing ${name}…`);
    reason = await install(print).then(() => reason, messageOf);
  }
  const after = await find(name);
  if (after.path !== null) return { path: after.path };
  const had = before.refusals.length > 0 ? ` (${before.refusals.join('; ')})` : '';
  return {
    problem:
      `${name} is missing${had} and could not be installed: ${reason}\n` +
      `  Install it by hand: ${byHand}; or set ${variable} to its path.`,
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** One installation at a time; null where neither cache nor checkout can be written. */
async function lockTools(print: (line: string) => void): Promise<(() => void) | null> {
  const tools = toolFolder(ROOT);
  try {
    mkdirSync(tools, { recursive: true });
    accessSync(tools, constants.W_OK);
  } catch {
    return null;
  }
  return await waitForLock(join(tools, 'programs.lock'), {
    waitMs: LOCK_WAIT_MS,
    onWait: ({ pid }) => print(`Waiting for process ${pid}, which installs programs…`),
  });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
