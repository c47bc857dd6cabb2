import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { within } from '#src/kernel/async/timeout.ts';
import { LaunchFailed, type BrowserSpec, type RunningBrowser } from '../browsers.ts';
import type { CdpEndpoint } from '../chromium/flags.ts';
import { cdpReady } from '../chromium/ready.ts';
import { boundLaunch } from '../until-ready.ts';
import {
  fillFolder,
  makeBrowserFolder,
  prepareProfile,
  removeBrowserFolder,
} from './browser-folder.ts';
import type { Child, ChildExit } from './child.ts';
import {
  chooseDisplay,
  displayListens,
  displayReady,
  isDisplayTaken,
  removeDisplayFiles,
  startDisplay,
  type Display,
} from './display.ts';
import type { BrowserUser, Programs } from './programs.ts';
import { createPeerCheck } from './peers.ts';
import type { Records, BrowserRecord } from './records.ts';
import { startChromium } from './start-chromium.ts';
import { endProcesses } from './tree.ts';
import { offerDriver, type OfferedDriver } from './webdriver.ts';

/**
 * The processes of one browser: an X server and Chromium on it, in a folder of their own. A
 * headless browser has Chromium alone.
 */
export type BrowserProcesses = {
  record: BrowserRecord;
  display: Display | null;
  chromium: Child;
  listening: Promise<CdpEndpoint>;
  /** Set once Chromium listens; null: there is no WebDriver. */
  driver: OfferedDriver | null;
};

/** What all browsers of this host have in common. */
export type Site = {
  programs: Programs;
  user: BrowserUser;
  /** The folder in which each browser gets its own. */
  tmp: string;
  records: Records;
  launchTimeoutMs: number;
  /** Where the driver of a workload takes commands. */
  driverPathOf: (workloadId: string) => string;
};

/** No program listens at port 0. */
const NO_PORT = 0;
/** A conflict needs two services that choose the same of 21,000 numbers within milliseconds. */
const DISPLAYS_TRIED_MAX = 3;
/**
 * What Chromium writes into its profile when its user closes it; entrypoint.sh looks for it too.
 */
const CLOSED_MARK = '"exit_type":"Normal"';
const DRAINED_WITHIN_MS = 200;
/** The longest time to read a profile's preferences, some 10 KB. */
const MARK_MS = 2_000;

/**
 * Starts a browser and waits until it is ready.
 * @throws LaunchFailed also when `stopped` is aborted; everything of the browser is removed then
 */
export async function startBrowser(
  site: Site,
  spec: BrowserSpec,
  stopped: AbortSignal,
): Promise<{ processes: BrowserProcesses; browser: RunningBrowser }> {
  for (let attempt = 1; ; attempt += 1) {
    using bounds = boundLaunch(site.launchTimeoutMs, stopped);
    const processes = await startPrograms(site, spec, bounds.signal);
    try {
      const cdp = await whenReady(processes, bounds.signal);
      const vnc = { host: '127.0.0.1', port: processes.display?.vncPort ?? NO_PORT };
      processes.driver = await openDriver(site, processes.record);
      const browser = { workloadId: spec.workloadId, cdp, vnc };
      const webdriver = {
        host: '127.0.0.1',
        port: processes.driver?.port ?? NO_PORT,
        cdpPort: cdp.port,
      };
      return {
        processes,
        browser: processes.driver === null ? browser : { ...browser, webdriver },
      };
    } catch (error) {
      await endBrowser(site, processes);
      const isTaken = processes.display !== null && isDisplayTaken(processes.display);
      if (isTaken && attempt < DISPLAYS_TRIED_MAX) continue;
      const culprit = error instanceof EndedEarly ? error.child : processes.chromium;
      throw new LaunchFailed(
        error instanceof Error ? error.message : String(error),
        culprit.tail(),
      );
    }
  }
}

/**
 * Ends every process of a browser and removes its files.
 * @throws Error where a process survives SIGKILL for 5 s; the browser stays recorded then
 */
export async function endBrowser(site: Site, processes: BrowserProcesses): Promise<void> {
  const { display, chromium, record, driver } = processes;
  driver?.close();
  const children = display === null ? [chromium] : [display.child, chromium];
  await endProcesses({ ...record, leaderless: true });
  await Promise.all(children.map(({ exited }) => exited));
  // A program's last output may arrive after its exit.
  const drained = Promise.all(children.map((child) => child.drained));
  await within(DRAINED_WITHIN_MS, drained, () => undefined);
  await removeTraces(site, record);
}

/** Ends a browser that an earlier service process has left, and removes its files. */
export async function endLeftover(site: Site, record: BrowserRecord): Promise<void> {
  await endProcesses({ ...record, leaderless: false });
  await removeTraces(site, record);
}

/**
 * Whether Chromium ended because its user closed it, by CDP or from its menu. The exit code alone
 * is not enough: it is 0 after a SIGTERM and after the end of the X server too. (Chromium records a
 * SIGINT or SIGHUP as a close by its user.)
 */
export async function wasClosed(
  { user }: Pick<Site, 'user'>,
  { record }: BrowserProcesses,
  { exitCode }: ChildExit,
): Promise<boolean> {
  if (exitCode !== 0) return false;
  const file = join(record.folder, 'profile/Default/Preferences');
  try {
    // As the browser's user: a page may have replaced the file by a link.
    const as = { cwd: '/', timeout: MARK_MS, ...user };
    await promisify(execFile)('/bin/grep', ['-qs', CLOSED_MARK, '--', file], as);
    return true;
  } catch {
    return false;
  }
}

async function startPrograms(
  site: Site,
  spec: BrowserSpec,
  signal: AbortSignal,
): Promise<BrowserProcesses> {
  const { workloadId } = spec;
  const folder = makeBrowserFolder(site.tmp);
  const display = spec.headless === true ? null : chooseDisplay();
  const record: BrowserRecord = { workloadId, folder, display, sessions: [] };
  try {
    return await spawnPrograms(site, spec, record, signal);
  } catch (error) {
    // The X server may have started a program (xkbcomp) and be gone before that.
    await endProcesses({ ...record, leaderless: true });
    await removeTraces(site, record);
    throw new LaunchFailed(`The browser could not be started: ${String(error)}`, '');
  }
}

/** Starts both programs, Chromium as soon as it can connect to the X server. */
async function spawnPrograms(
  site: Site,
  spec: BrowserSpec,
  record: BrowserRecord,
  signal: AbortSignal,
): Promise<BrowserProcesses> {
  const { user, programs, records } = site;
  const { folder } = record;
  records.write(record);
  const place = { folder, env: environment(folder, record.display), user };
  let display: Display | null = null;
  const hasDisplay = record.display !== null;
  await fillFolder(folder, spec, { user, chromium: programs.chromium, hasDisplay, signal });
  const preparing = prepareProfile(spec, { folder, user }, signal);
  // A failure is thrown where it is awaited.
  preparing.catch(() => undefined);
  if (record.display !== null) {
    display = startDisplay(programs.xvnc, spec, { ...place, number: record.display });
    addSession(record, display.child);
    records.write(record);
    await untilListening(display, signal);
  }
  await preparing;
  const isPeer = createPeerCheck(() => record.sessions, user);
  const proxyPort = spec.egress === undefined ? null : await spec.egress.listen(isPeer);
  const { child: chromium, listening } = startChromium(programs.chromium, spec, {
    ...place,
    proxyPort,
  });
  addSession(record, chromium);
  records.write(record);
  return { record, display, chromium, listening, driver: null };
}

/** The browser's WebDriver, in a session of its own that ends with the browser. */
async function openDriver(
  { programs, driverPathOf, user, records }: Site,
  record: BrowserRecord,
): Promise<OfferedDriver | null> {
  const program = programs.chromedriver ?? null;
  if (program === null) return null;
  const { folder, display, workloadId } = record;
  return offerDriver(program, {
    path: driverPathOf(workloadId),
    place: { folder, env: environment(folder, display), user },
    onStarted(child) {
      addSession(record, child);
      records.write(record);
    },
  });
}

function addSession(record: BrowserRecord, { session }: Child): void {
  if (session !== null) record.sessions.push(session);
}

/** Waits for the X server's socket. If the launch fails meanwhile, `whenReady` says why. */
async function untilListening(display: Display, signal: AbortSignal): Promise<void> {
  const ended = new AbortController();
  void display.child.exited.then(() => ended.abort());
  await displayListens(display, AbortSignal.any([signal, ended.signal])).catch(() => {});
}

async function whenReady(processes: BrowserProcesses, bounds: AbortSignal): Promise<CdpEndpoint> {
  const { display, chromium } = processes;
  const failed = new AbortController();
  const signal = AbortSignal.any([failed.signal, bounds]);
  const aborted = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => aborted.reject(signal.reason as Error), { once: true });
  void chromium.exited.then((exit) => failed.abort(new EndedEarly('Chromium', chromium, exit)));
  void display?.child.exited.then((exit) =>
    failed.abort(new EndedEarly('The X server', display.child, exit)),
  );
  try {
    bounds.throwIfAborted();
    const answers = processes.listening.then(async (endpoint) => {
      await cdpReady(endpoint, signal);
      return endpoint;
    });
    const shown = display === null ? null : displayReady(display, signal);
    const all = Promise.all([answers, shown]);
    const [endpoint] = await Promise.race([all, aborted.promise]);
    return endpoint;
  } finally {
    // Closes the sockets of checks that still wait.
    failed.abort(new Error('The launch is over'));
  }
}

/** A program of the browser ended during the launch. */
class EndedEarly extends Error {
  readonly child: Child;
  constructor(name: string, child: Child, exit: ChildExit) {
    super(`${name} ended before the browser was ready: ${describeExit(exit)}`);
    this.child = child;
  }
}

/** Describes how a program ended. */
export function describeExit({ exitCode, signal }: ChildExit): string {
  if (signal !== null) return `killed by ${signal}`;
  return exitCode === null ? 'it could not be started' : `exit code ${exitCode}`;
}

/** The programs' environment: no variable of the service, since those may hold secrets. */
function environment(folder: string, display: number | null): Record<string, string> {
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    LANG: process.env['LANG'] ?? 'C.UTF-8',
    HOME: folder,
    TMPDIR: folder,
    ...(display === null ? {} : { DISPLAY: `:${display}`, XAUTHORITY: `${folder}/xauthority` }),
  };
}

async function removeTraces(site: Site, record: BrowserRecord): Promise<void> {
  if (record.display !== null) await removeDisplayFiles(record.display);
  await removeBrowserFolder(record.folder, site.user);
  site.records.remove(record.workloadId);
}
