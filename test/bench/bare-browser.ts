import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WebSocket } from 'ws';
import { firstReply } from './cdp-client.ts';

/** The usual flags for a quiet browser; the service's browsers have a few more. */
const FLAGS = [
  '--remote-debugging-port=0',
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-gpu',
  '--password-store=basic',
];
/** Chromium's sandbox needs a user other than root: uid 65534, as for the service's browsers. */
const NOBODY_UID = 65_534;

/** An unmanaged Chromium, ready: the limit that a cold create is compared with. */
export type BareBrowser = {
  socket: WebSocket;
  /** Ends it as fast as possible; resolves when the parent of its processes has exited. */
  exit(): Promise<void>;
};

/**
 * Spawns Chromium and resolves at its first CDP reply.
 * @param mode headless, or headful on its own X server like the service's sessions
 */
export async function launchBare(
  programs: { chromium: string; xvnc: string },
  mode: 'headless' | 'headful',
): Promise<BareBrowser> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-bare-'));
  const isRoot = process.getuid?.() === 0;
  if (isRoot) await chown(folder, NOBODY_UID, NOBODY_UID);
  const user = isRoot ? { uid: NOBODY_UID, gid: NOBODY_UID } : {};
  const display = mode === 'headful' ? await startDisplay(programs.xvnc, user, folder) : null;
  const chromium = spawn(
    programs.chromium,
    [
      ...FLAGS,
      `--user-data-dir=${folder}/profile`,
      ...(display === null ? ['--headless=new'] : ['--window-size=1280,800']),
      'about:blank',
    ],
    {
      ...user,
      cwd: folder,
      env: { HOME: folder, PATH: process.env['PATH'], DISPLAY: display?.name ?? '' },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  const socket = await firstReply(await devtoolsAddress(chromium));
  return {
    socket,
    async exit() {
      socket.terminate();
      const gone = once(chromium, 'exit');
      chromium.kill('SIGKILL');
      display?.server.kill('SIGKILL');
      await gone;
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}

async function startDisplay(xvnc: string, user: object, folder: string) {
  const flags = ['-displayfd', '3', '-geometry', '1280x800', '-depth', '24', '-nolisten', 'tcp'];
  const quiet = ['-SecurityTypes', 'None', '-rfbport', '-1', '-noreset'];
  const server = spawn(xvnc, [...flags, ...quiet], {
    ...user,
    cwd: folder,
    env: { HOME: folder, PATH: process.env['PATH'] },
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const numbers = server.stdio[3] as NodeJS.ReadableStream;
  const [data] = (await once(numbers, 'data')) as [Buffer];
  return { server, name: `:${data.toString().trim()}` };
}

async function devtoolsAddress(chromium: ChildProcess): Promise<string> {
  let said = '';
  for await (const chunk of chromium.stderr ?? []) {
    said += String(chunk);
    const found = /DevTools listening on (ws:\S+)/.exec(said)?.[1];
    if (found !== undefined) {
      chromium.stderr?.resume();
      return found;
    }
  }
  throw new Error(`Chromium ended:\n${said}`);
}
