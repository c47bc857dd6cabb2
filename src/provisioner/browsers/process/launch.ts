import { execFile } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { LaunchFailed } from '../browsers.ts';
import type { BrowserSpec, RunningBrowser } from '../browsers.ts';
import type { CdpEndpoint } from '../chromium/flags.ts';
import { cdpReady, startChromium } from '../chromium/ready.ts';
import type { Child, ChildExit } from './child.ts';
import {
  chooseDisplay,
  displayReady,
  isDisplayTaken,
  removeDisplayFiles,
  startDisplay,
  writeCookie,
  writeKeymap,
  writePassword,
} from './display.ts';
import type { Display } from './display.ts';
import type { BrowserUser, Programs } from './programs.ts';
import type { Records, WorkloadRecord } from './records.ts';
import { endProcesses } from './tree.ts';

/**
 * One browser of this process: an X server and a Chromium on it, in a folder of their own. Headless
 * it is Chromium alone.
 */
export type Workload = {
  record: WorkloadRecord;
  display: Display | null;
  chromium: Child;
  listening: Promise<CdpEndpoint>;
  passwordWritten: Promise<void>;
};

/** What all workloads of this machine have in common. */
export type Site = {
  programs: Programs;
  user: BrowserUser;
  /** The machine's temporary folder. */
  tmp: string;
  records: Records;
  launchTimeoutMs: number;
};

const FOLDER_PREFIX = 'bss-browser-';
/** Where nobody listens. */
const NO_PORT = 0;
/** A clash needs two services to draw the same of 21,000 numbers within milliseconds. */
const DISPLAYS_TRIED_MAX = 3;
/** What Chromium notes in its profile where its user closed it; entrypoint.sh looks for it, too. */
const CLOSED_NOTE = '"exit_type":"Normal"';
/** A profile's preferences are some 10 KB; what is not read within this is no note. */
const NOTE_MS = 2_000;

/**
 * Starts a browser and waits until it is ready.
 * @throws LaunchFailed also when `signal` is aborted; nothing of it is left then
 */
export async function startWorkload(
  site: Site,
  spec: BrowserSpec,
  signal: AbortSignal,
): Promise<{ workload: Workload; browser: RunningBrowser }> {
  for (let attempt = 1; ; attempt += 1) {
    const workload = await startPrograms(site, spec);
    try {
      const cdp = await whenReady(workload, site.launchTimeoutMs, signal);
      const vnc = { host: '127.0.0.1', port: workload.display?.vncPort ?? NO_PORT };
      return { workload, browser: { workloadId: spec.workloadId, cdp, vnc } };
    } catch (error) {
      await endWorkload(site, workload);
      const isTaken = workload.display !== null && isDisplayTaken(workload.display);
      if (isTaken && attempt < DISPLAYS_TRIED_MAX) continue;
      const culprit = error instanceof EndedEarly ? error.child : workload.chromium;
      throw new LaunchFailed(
        error instanceof Error ? error.message : String(error),
        culprit.tail(),
      );
    }
  }
}

/**
 * Ends every process of a browser and removes all it had on disk.
 * @throws Error when a process outlives its kill by 5 s; what is left stays recorded
 */
export async function endWorkload(site: Site, workload: Workload): Promise<void> {
  const { display, chromium, record } = workload;
  const children = display === null ? [chromium] : [display.child, chromium];
  await workload.passwordWritten.catch(() => {});
  await endProcesses({ ...record, leaderless: true });
  await Promise.all(children.map(({ exited }) => exited));
  // Its last words are still on their way when a program ends.
  await Promise.race([Promise.all(children.map(({ drained }) => drained)), sleep(200)]);
  await removeTraces(site, record);
}

/** The same for a browser that an earlier service process has left. */
export async function endLeftover(site: Site, record: WorkloadRecord): Promise<void> {
  await endProcesses({ ...record, leaderless: false });
  await removeTraces(site, record);
}

/**
 * Whether Chromium ended because its user closed it: by CDP, or from its own menu. Its exit code
 * alone does not say so: it is 0 as well after a SIGTERM, and after the end of its X server. (A
 * SIGINT or SIGHUP it notes as its user's own close.)
 */
export async function wasClosed(
  { user }: Pick<Site, 'user'>,
  { record }: Workload,
  { exitCode }: ChildExit,
): Promise<boolean> {
  if (exitCode !== 0) return false;
  const file = join(record.folder, 'profile/Default/Preferences');
  try {
    // As the browser's user, for what a page may have put there in its place.
    const as = { cwd: '/', timeout: NOTE_MS, ...user };
    await promisify(execFile)('/bin/grep', ['-qs', CLOSED_NOTE, '--', file], as);
    return true;
  } catch {
    return false;
  }
}

async function startPrograms(site: Site, spec: BrowserSpec): Promise<Workload> {
  const { workloadId } = spec;
  const folder = mkdtempSync(join(site.tmp, FOLDER_PREFIX));
  const display = spec.headless === true ? null : chooseDisplay();
  const record: WorkloadRecord = { workloadId, folder, display, sessions: [] };
  try {
    return spawnPrograms(site, spec, record);
  } catch (error) {
    await endLeftover(site, record);
    throw new LaunchFailed(`The browser could not be started: ${String(error)}`, '');
  }
}

/** Both programs at once: Chromium comes to need its display long after X has opened the socket. */
function spawnPrograms(site: Site, spec: BrowserSpec, record: WorkloadRecord): Workload {
  const { user, programs, records } = site;
  const { folder } = record;
  records.write(record);
  const place = { folder, env: environment(folder, record.display), user };
  let display: Display | null = null;
  let passwordWritten = Promise.resolve();
  if (record.display !== null) {
    writeCookie(folder, user);
    writeKeymap(folder, user);
    passwordWritten = writePassword(programs.vncpasswd, folder, spec.vncPassword, user);
  }
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  if (record.display !== null)
    display = startDisplay(programs.xvnc, spec, { ...place, number: record.display });
  const { child: chromium, listening } = startChromium(programs.chromium, spec, place);
  const started = [display?.child.session ?? null, chromium.session];
  record.sessions = started.filter((session) => session !== null);
  records.write(record);
  return { record, display, chromium, listening, passwordWritten };
}

async function whenReady(
  workload: Workload,
  timeoutMs: number,
  stopped: AbortSignal,
): Promise<CdpEndpoint> {
  const { display, chromium } = workload;
  const failed = new AbortController();
  const signal = AbortSignal.any([failed.signal, stopped]);
  const aborted = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => aborted.reject(signal.reason as Error), { once: true });
  const timer = setTimeout(() => {
    failed.abort(new Error(`The browser was not ready within ${timeoutMs} ms`));
  }, timeoutMs);
  void chromium.exited.then((exit) => failed.abort(new EndedEarly('Chromium', chromium, exit)));
  void display?.child.exited.then((exit) =>
    failed.abort(new EndedEarly('The X server', display.child, exit)),
  );
  try {
    stopped.throwIfAborted();
    const answers = workload.listening.then(async (endpoint) => {
      await cdpReady(endpoint, signal);
      return endpoint;
    });
    const shown = display === null ? null : displayReady(display, signal);
    const all = Promise.all([answers, shown, workload.passwordWritten]);
    const [endpoint] = await Promise.race([all, aborted.promise]);
    return endpoint;
  } finally {
    clearTimeout(timer);
    // The losers of the race let go of their sockets.
    failed.abort(new Error('The launch is over'));
  }
}

/** A program of the browser ended while it was being launched. */
class EndedEarly extends Error {
  readonly child: Child;
  constructor(name: string, child: Child, exit: ChildExit) {
    super(`${name} ended before the browser was ready: ${describeExit(exit)}`);
    this.child = child;
  }
}

/** How a program ended, in words. */
export function describeExit({ exitCode, signal }: ChildExit): string {
  if (signal !== null) return `killed by ${signal}`;
  return exitCode === null ? 'it could not be started' : `exit code ${exitCode}`;
}

/** All that the programs get to see of ours: no variable of the service, which may hold secrets. */
function environment(folder: string, display: number | null): Record<string, string> {
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    LANG: process.env['LANG'] ?? 'C.UTF-8',
    HOME: folder,
    TMPDIR: folder,
    ...(display === null ? {} : { DISPLAY: `:${display}`, XAUTHORITY: `${folder}/xauthority` }),
  };
}

async function removeTraces(site: Site, record: WorkloadRecord): Promise<void> {
  const { folder, workloadId } = record;
  if (!basename(folder).startsWith(FOLDER_PREFIX)) throw new Error(`not a browser's: ${folder}`);
  if (record.display !== null) await removeDisplayFiles(record.display);
  if (existsSync(folder)) await removeFolder(folder, site.user);
  site.records.remove(workloadId);
}

/**
 * What is in it goes as the browser's user: nothing that a page left there can lead root astray.
 */
async function removeFolder(folder: string, user: BrowserUser): Promise<void> {
  const clean = promisify(execFile)('/bin/rm', ['-rf', '--', folder], { cwd: '/', ...user });
  // The folder itself may be in one that this user cannot write to.
  await clean.catch(() => {});
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}
