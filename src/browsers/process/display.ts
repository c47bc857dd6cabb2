import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import {
  chownSync,
  closeSync,
  existsSync,
  fchownSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { again, retry } from '#src/kernel/async/retry.ts';
import type { BrowserSpec } from '../browsers.ts';
import { rfbReady, vncPasswordFile } from '../rfb.ts';
import { startChild } from './child.ts';
import type { Child } from './child.ts';
import type { BrowserUser } from './programs.ts';

/**
 * The X display of a browser: one Xtigervnc. The display number determines the VNC port (10,000 +
 * display), which is below Linux's ephemeral range. If either is taken the server exits at once,
 * and the launch tries another number.
 */
export type Display = {
  number: number;
  vncPort: number;
  child: Child;
};

const DISPLAY_MIN = 1000;
const DISPLAY_MAX = 22_000;
const VNC_PORT_BASE = 10_000;
const LISTENS_POLL_MS = 2;

/** The keymap: what viewers can type. The browser image has the same files. */
const KEYMAP_FOLDER = fileURLToPath(new URL('../../../deploy/browser/xkb/', import.meta.url));
const KEYMAP_FILES = ['rules/evdev', 'symbols/letters'] as const;

/** A display number without a lock file or a socket. */
export function chooseDisplay(): number {
  for (;;) {
    const number = randomInt(DISPLAY_MIN, DISPLAY_MAX);
    if (!existsSync(lockOf(number)) && !existsSync(socketOf(number))) return number;
  }
}

/** Starts the X server; it is ready when `displayReady` resolves. */
export function startDisplay(
  program: string,
  spec: BrowserSpec,
  place: { number: number; folder: string; env: Record<string, string>; user: BrowserUser },
): Display {
  const vncPort = VNC_PORT_BASE + place.number;
  const args = [
    [`:${place.number}`, '-displayfd', '3', '-auth', `${place.folder}/xauthority`],
    ['-xkbdir', keymapFolder(place.folder)],
    ['-geometry', `${spec.screen.width}x${spec.screen.height}`, '-depth', '24'],
    // No program draws with GL here, and X would load LLVM for it: 20 MB and 20 ms.
    ['-extension', 'GLX'],
    ['-nolisten', 'tcp', '-noreset', '-localhost', '-rfbport', String(vncPort)],
    ['-SecurityTypes', 'VncAuth', '-PasswordFile', passwordFile(place.folder)],
    // Every viewer comes from the gateway's address: the blacklist would block all for one.
    ['-UseBlacklist=0', '-AlwaysShared', '-desktop', 'browser'],
    // The gateway passes half of it. Chromium waits for ever for a text that is longer.
    ['-MaxCutText', String(2 * 1024 ** 2)],
  ].flat();
  const child = startChild(program, args, {
    env: place.env,
    cwd: place.folder,
    user: place.user,
    pipe3: true,
  });
  return { number: place.number, vncPort, child };
}

/** Resolves when X accepts clients and the VNC port has sent its greeting. */
export async function displayReady(display: Display, signal: AbortSignal): Promise<void> {
  const pipe = display.child.process.stdio[3] as Readable;
  await once(pipe, 'data', { signal });
  // X writes a second time and exits if it cannot, so the pipe stays open until X closes it.
  pipe.resume();
  await rfbReady({ host: '127.0.0.1', port: display.vncPort }, signal);
}

/**
 * Resolves once X clients can connect: some 12 ms after the start, and 40 ms before the server
 * answers them. Chromium exits if it finds no server to connect to.
 * @throws the signal's reason
 */
export async function displayListens({ number }: Display, signal: AbortSignal): Promise<void> {
  await retry({ pauseMs: () => LISTENS_POLL_MS, signal }, async () => {
    signal.throwIfAborted();
    return (await isInUse(socketOf(number))) ? undefined : again;
  });
}

/** Whether the X server ended because its display number or its port is taken. */
export function isDisplayTaken(display: Display): boolean {
  return /already active for display|already in use|already running/i.test(display.child.tail());
}

/**
 * Writes the cookie that X clients need. Without it every process of the user could open windows on
 * the display.
 */
export function writeCookie(folder: string, user: BrowserUser): void {
  const anyHost = Buffer.from([0xff, 0xff, 0, 0]);
  const anyDisplay = Buffer.from([0, 0]);
  const entry = [
    anyHost,
    anyDisplay,
    ...counted(Buffer.from('MIT-MAGIC-COOKIE-1')),
    ...counted(randomBytes(16)),
  ];
  const target = openPrivate(`${folder}/xauthority`, user);
  writeFileSync(target, Buffer.concat(entry));
  closeSync(target);
}

/**
 * Writes the files from which the X server compiles its keymap: copies, since the browser's user
 * may not be able to read the service's files.
 */
export function writeKeymap(folder: string, user: BrowserUser): void {
  const root = keymapFolder(folder);
  for (const path of [root, `${root}/rules`, `${root}/symbols`]) {
    mkdirSync(path, { mode: 0o700 });
    if (user !== undefined) chownSync(path, user.uid, user.gid);
  }
  for (const file of KEYMAP_FILES) {
    const target = openPrivate(`${root}/${file}`, user);
    writeFileSync(target, readFileSync(KEYMAP_FOLDER + file));
    closeSync(target);
  }
}

/**
 * Writes the file of the VNC password. The X server reads it at every connection, so the file
 * stays.
 */
export function writePassword(folder: string, password: string, user: BrowserUser): void {
  const target = openPrivate(passwordFile(folder), user);
  writeFileSync(target, vncPasswordFile(password));
  closeSync(target);
}

/**
 * Removes what a killed X server leaves, unless another server uses its number by now: the socket,
 * and the compiled keymap, which it removes itself once it has read it. (With `-displayfd` there is
 * no lock file.)
 */
export async function removeDisplayFiles(number: number): Promise<void> {
  if (await isInUse(socketOf(number))) return;
  rmSync(socketOf(number), { force: true });
  rmSync(keymapOf(number), { force: true });
}

/** Whether a process listens on the socket; any error but a refusal counts as yes. */
async function isInUse(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ECONNREFUSED';
  } finally {
    socket.destroy();
  }
}

function counted(bytes: Buffer): Buffer[] {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return [length, bytes];
}

/** A new file that only the browser's user can read. */
function openPrivate(path: string, user: BrowserUser): number {
  const target = openSync(path, 'wx', 0o600);
  if (user !== undefined) fchownSync(target, user.uid, user.gid);
  return target;
}

function passwordFile(folder: string): string {
  return `${folder}/vnc-password`;
}

function keymapFolder(folder: string): string {
  return `${folder}/xkb`;
}

function lockOf(number: number): string {
  return `/tmp/.X${number}-lock`;
}

function socketOf(number: number): string {
  return `/tmp/.X11-unix/X${number}`;
}

/** Where the keymap of an X server that does not run as root is compiled to. */
function keymapOf(number: number): string {
  return `/tmp/server-${number}.xkm`;
}
