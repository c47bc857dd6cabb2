import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { WebSocket } from 'ws';
import { sleep } from '#src/kernel/async/sleep.ts';
import { within } from '#src/kernel/async/timeout.ts';
import { chooseDisplay } from '#src/browsers/process/display.ts';
import { prepareFolders } from '#src/browsers/process/programs.ts';
import { processesAt } from '#test/support/service/processes.ts';
import { eventually } from '#test/support/service/service.ts';
import { firstReply } from '../cdp-client.ts';

/** `chromium` is the binary itself, not a distribution's script around it. */
export type Programs = { chromium: string; xvnc: string };

/**
 * Headless, with Chromium's sandbox or without; or headful on its own X server, like the service's
 * sessions, with the sandbox.
 */
export type BareMode = 'headless' | 'unsandboxed' | 'headful';

/** An unmanaged Chromium, ready: the limit that a create is compared with. */
export type BareBrowser = {
  socket: WebSocket;
  /** Of its DevTools. */
  address: string;
  /** From the start of the first program to the first CDP reply. */
  launchMs: number;
  /** Kills it. @returns milliseconds until its main process has exited, and until all have */
  exit(): Promise<{ exitMs: number; goneMs: number }>;
  /** Ends its X server, and removes its files. */
  remove(): Promise<void>;
};

/**
 * The fewest flags of a quick launch. The port is DevTools'. Without the second, Chromium starts
 * two renderers for popups of an address bar, which takes 8 % of a headless launch.
 */
const FLAGS = [
  '--remote-debugging-port=0',
  '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup',
];
/**
 * A headful browser would show its first-run pages, and is ready 7 % later if it first looks for a
 * graphics processor.
 */
const FLAGS_OF: Readonly<Record<BareMode, readonly string[]>> = {
  headless: ['--headless'],
  unsandboxed: ['--headless', '--no-sandbox'],
  headful: ['--no-first-run', '--no-default-browser-check', '--disable-gpu'],
};
/** Chromium's sandbox needs a user other than root: uid 65534, as for the service's browsers. */
const NOBODY_UID = 65_534;
const ACCEPTS_POLL_MS = 1;
const ACCEPTS_WITHIN_MS = 10_000;
const GONE_WITHIN_MS = 10_000;

type Place = { folder: string; user: { uid?: number; gid?: number } };

/** Starts Chromium, and an X server before a headful one; resolves at its first CDP reply. */
export async function launchBare(programs: Programs, mode: BareMode): Promise<BareBrowser> {
  const place = await preparePlace();
  const number = chooseDisplay();
  const begunAt = performance.now();
  const screen = mode === 'headful' ? startScreen(programs.xvnc, place, number) : null;
  // Chromium exits if it finds no X server. The server accepts it long before it is ready itself.
  if (screen !== null) await accepts(`/tmp/.X11-unix/X${number}`);
  const display = screen === null ? '' : `:${number}`;
  const chromium = startChromium(programs.chromium, place, mode, display);
  const address = await devtoolsAddress(chromium);
  const socket = await firstReply(address);
  const launchMs = performance.now() - begunAt;
  return {
    socket,
    address,
    launchMs,
    async exit() {
      const killedAt = performance.now();
      const since = () => performance.now() - killedAt;
      const exited = once(chromium, 'exit').then(since);
      // Its helpers end by themselves. Each has its stderr, which closes with the last of them.
      const gone = once(chromium, 'close').then(since);
      chromium.kill('SIGKILL');
      return { exitMs: await exited, goneMs: await within(GONE_WITHIN_MS, gone) };
    },
    async remove() {
      socket.terminate();
      // X removes its socket and its lock file at this signal.
      if (screen?.kill('SIGTERM') === true) await once(screen, 'exit');
      await eventually(() => processesAt(place.folder).length === 0, 'Chromium has ended');
      await rm(place.folder, { recursive: true, force: true });
    },
  };
}

/** A folder where the service's browsers have theirs: in memory, where that is possible. */
async function preparePlace(): Promise<Place> {
  const user = process.getuid?.() === 0 ? { uid: NOBODY_UID, gid: NOBODY_UID } : undefined;
  const folder = await mkdtemp(join(await prepareFolders(user), 'bss-bare-'));
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  return { folder, user: user ?? {} };
}

function startChromium(program: string, place: Place, mode: BareMode, display: string) {
  const { folder, user } = place;
  const profile = `--user-data-dir=${folder}/profile`;
  return spawn(program, [...FLAGS, profile, ...FLAGS_OF[mode], 'about:blank'], {
    ...user,
    cwd: folder,
    env: { HOME: folder, PATH: process.env['PATH'], DISPLAY: display },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

function startScreen(program: string, { folder, user }: Place, number: number) {
  const size = ['-geometry', '1280x800', '-depth', '24'];
  const quiet = ['-SecurityTypes', 'None', '-rfbport', '-1', '-noreset'];
  return spawn(program, [`:${number}`, ...size, ...quiet], {
    ...user,
    cwd: folder,
    env: { HOME: folder, PATH: process.env['PATH'] },
    stdio: 'ignore',
  });
}

/** Resolves once a process accepts connections at the socket. */
async function accepts(path: string): Promise<void> {
  const deadline = performance.now() + ACCEPTS_WITHIN_MS;
  for (;;) {
    if (existsSync(path) && (await isAccepted(path))) return;
    if (performance.now() > deadline) throw new Error(`no X server at ${path}`);
    await sleep(ACCEPTS_POLL_MS);
  }
}

async function isAccepted(path: string): Promise<boolean> {
  const socket = connect(path);
  const connected = once(socket, 'connect').then(() => true);
  return connected.catch(() => false).finally(() => socket.destroy());
}

/** The address in Chromium's output, as soon as it is there. */
function devtoolsAddress(chromium: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let said = '';
  chromium.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    const found = /DevTools listening on (ws:\S+)\n/.exec(said)?.[1];
    if (found !== undefined) resolve(found);
  });
  chromium.on('error', reject);
  chromium.on('exit', () => reject(new Error(`Chromium ended:\n${said}`)));
  return promise;
}
