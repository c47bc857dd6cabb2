import { randomBytes } from 'node:crypto';
import { within } from '#src/kernel/async/timeout.ts';
import type {
  BrowserBuild,
  BrowserExit,
  BrowserFolders,
  Browsers,
  BrowserSpec,
  ObservedBrowser,
  RunningBrowser,
} from '../browsers.ts';
import { closeBrowser } from '../chromium/close.ts';
import { OwnBrowsers, type OwnBrowser } from '../own-browsers.ts';
import { folderBytes } from './folder-bytes.ts';
import { createProcessFolders } from './folders.ts';
import { countMemoryKills } from './oom.ts';
import type { Child } from './child.ts';
import { findPrograms, prepareFolders, readBuild } from './programs.ts';
import { memoryOf } from './tree.ts';
import type { BrowserUser, Programs } from './programs.ts';
import { openRecords } from './records.ts';
import { packProfile } from './profile-folder.ts';
import { freezeProcesses } from './tree.ts';
import { describeExit, endBrowser, endLeftover, startBrowser, wasClosed } from './launch.ts';
import type { BrowserProcesses, Site } from './launch.ts';

/**
 * Browsers as child processes on loopback: headful Chromium, each on its own X server. For
 * development and tests: Chromium's own sandbox is on, but browsers share the network and the files
 * of the host with the service.
 */
export type ProcessBrowsersOptions = Programs & {
  /** A folder of its own for the records that the next process needs if this one is killed. */
  stateDir: string;
  /** The longest duration of a launch; 15,000 by default. */
  launchTimeoutMs?: number;
  /**
   * The user of the browsers. Default: uid 65534 if the service is root, else the service's user.
   */
  uid?: { uid: number; gid: number };
  /** Where the driver of a workload takes commands, as the gateway has it. */
  driverPathOf?: (workloadId: string) => string;
};

/** Chromium's sandbox refuses root. The ids of the unprivileged user on every Linux. */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };
const DETAIL_CHARS_MAX = 2048;
/** Within this a browser's two programs count as having ended together. */
const OTHER_END_MS = 100;

/**
 * @throws BrowsersUnavailable where a program is missing or not executable for the browsers' user
 */
export async function createProcessBrowsers(options: ProcessBrowsersOptions): Promise<Browsers> {
  const user: BrowserUser = options.uid ?? (process.getuid?.() === 0 ? UNPRIVILEGED : undefined);
  const [programs, tmp] = await Promise.all([findPrograms(options, user), prepareFolders(user)]);
  const launchTimeoutMs = options.launchTimeoutMs ?? 15_000;
  const records = openRecords(options.stateDir);
  const build = await readBuild(programs.chromium, user);
  const driverPathOf = options.driverPathOf ?? (() => `/${randomBytes(16).toString('hex')}`);
  const site = { programs, user, tmp, records, launchTimeoutMs, driverPathOf };
  return new ProcessBrowsers(site, build);
}

/** A browser of this process; it is being launched until `launched` is set. */
type ProcessBrowser = OwnBrowser & {
  launched: { processes: BrowserProcesses; browser: RunningBrowser } | null;
  /** Whether its profile is read after its close: then it is removed by its stop alone. */
  keepsProfile: boolean;
  /** The kernel's count of memory kills at the launch, or at the last kill that was explained. */
  memoryKills: number | null;
};

class ProcessBrowsers implements Browsers {
  readonly kind = 'process';
  /** They share the host's network: what breaks out of Chromium is free. */
  readonly egress = 'browser';
  readonly #site: Site;
  readonly #own = new OwnBrowsers<ProcessBrowser>(({ launched }, workloadId) =>
    launched === null ? this.#stopLeftover(workloadId) : endBrowser(this.#site, launched.processes),
  );

  readonly folders: BrowserFolders;
  readonly #build: BrowserBuild;

  constructor(site: Site, build: BrowserBuild) {
    this.#site = site;
    this.#build = build;
    this.folders = createProcessFolders(
      (workloadId) => this.#own.get(workloadId)?.launched?.processes.record.folder ?? null,
      site.user,
    );
  }

  build(): BrowserBuild {
    return this.#build;
  }

  async launch(spec: BrowserSpec): Promise<RunningBrowser> {
    const { workloadId } = spec;
    this.#own.assertCanLaunch(workloadId);
    const stopped = new AbortController();
    const launching = startBrowser(this.#site, spec, stopped.signal);
    const own: ProcessBrowser = {
      stopped,
      launching,
      launched: null,
      sessionId: null,
      removal: null,
      keepsProfile: spec.profile?.isKept === true,
      memoryKills: countMemoryKills(),
    };
    this.#own.set(workloadId, own);
    try {
      own.launched = await launching;
      void this.#watch(workloadId, own, own.launched.processes);
      return own.launched.browser;
    } catch (error) {
      this.#own.delete(workloadId);
      throw error;
    }
  }

  async stop(workloadId: string): Promise<void> {
    const own = this.#own.get(workloadId);
    await (own === undefined ? this.#stopLeftover(workloadId) : this.#own.stop(workloadId, own));
  }

  async close(workloadId: string, withinMs: number): Promise<boolean> {
    const own = this.#own.get(workloadId);
    if (own?.launched === undefined || own.launched === null) return false;
    const { browser, processes } = own.launched;
    const exit = await closeBrowser(browser, processes.chromium.exited, withinMs);
    return exit !== null && wasClosed(this.#site, processes, exit);
  }

  async *readProfile(workloadId: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const own = this.#own.get(workloadId);
    if (own?.launched === undefined || own.launched === null)
      throw new Error(`${workloadId} has no profile here`);
    const { record } = own.launched.processes;
    // Of a browser that was closed nothing is left to be stopped.
    using _ = await freezeProcesses({ ...record, leaderless: true });
    yield* packProfile({ folder: record.folder, user: this.#site.user }, signal);
  }

  async list(): Promise<ObservedBrowser[]> {
    const listed = this.#own.entries().map(([workloadId, own]) => ({
      workloadId,
      sessionId: own.sessionId,
      adoptable: runningOf(own),
    }));
    const records = this.#site.records.present();
    const left = records.filter(({ workloadId }) => this.#own.get(workloadId) === undefined);
    const none = { sessionId: null, adoptable: null };
    return [...listed, ...left.map(({ workloadId }) => ({ workloadId, ...none }))];
  }

  async assign(workloadId: string, sessionId: string): Promise<void> {
    const own = this.#own.get(workloadId);
    if (own !== undefined) own.sessionId = sessionId;
  }

  async memoryUsed(workloadId: string): Promise<number | null> {
    const launched = this.#own.get(workloadId)?.launched ?? null;
    return launched === null ? null : memoryOf({ ...launched.processes.record, leaderless: true });
  }

  async storedBytes(workloadId: string): Promise<number | null> {
    const launched = this.#own.get(workloadId)?.launched ?? null;
    return launched === null ? null : folderBytes(launched.processes.record.folder);
  }

  /** Browsers of another process are not adopted: too little is known about them. */
  async adopt(workloadId: string): Promise<RunningBrowser | null> {
    const own = this.#own.get(workloadId);
    return own === undefined ? null : runningOf(own);
  }

  onExit(listener: (exit: BrowserExit) => void): void {
    this.#own.onExit(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#own.close();
  }

  /** Ends a browser that an earlier service process or a failed launch has left. */
  async #stopLeftover(workloadId: string): Promise<void> {
    const records = this.#site.records.present();
    const record = records.find((candidate) => candidate.workloadId === workloadId);
    if (record !== undefined) await endLeftover(this.#site, record);
  }

  /** Reports an end without a stop, after the rest of the browser has been ended. */
  async #watch(
    workloadId: string,
    own: ProcessBrowser,
    processes: BrowserProcesses,
  ): Promise<void> {
    const { chromium, display } = processes;
    const ends = [endOf('Chromium', chromium)];
    if (display !== null) ends.unshift(endOf('X server', display.child));
    const first = await Promise.race(ends);
    const endedAt = Date.now();
    // Chromium ends with its X server, not the other way round; the order of the exits varies.
    const end = await within(OTHER_END_MS, Promise.race(ends.slice(0, -1)), () => first);
    // Read now: the profile, which shows a close, is removed with the browser.
    const isClosed = end.child === chromium && (await wasClosed(this.#site, processes, end));
    if (own.stopped.signal.aborted) return;
    let reason: BrowserExit['reason'] = isClosed ? 'browser_closed' : 'browser_crashed';
    if (end.signal === 'SIGKILL' && this.#claimMemoryKill(own)) reason = 'out_of_memory';
    const hasProfile = isClosed && own.keepsProfile;
    const unfinished = hasProfile ? '' : await this.#own.removeAfterExit(workloadId, own);
    const summary = `${end.name}: ${describeExit(end)}${unfinished}\n`;
    const exit: BrowserExit = {
      workloadId,
      reason,
      exitCode: end.exitCode,
      ...(end.signal === null ? {} : { signal: end.signal }),
      endedAt,
      detail: summary + end.child.tail().slice(-(DETAIL_CHARS_MAX - summary.length)),
      ...(hasProfile ? { hasProfile } : {}),
    };
    this.#own.reportExit(exit);
  }

  /**
   * Whether the kernel killed a process for lack of memory since this browser's launch or since the
   * last such kill that was explained. The kernel does not count by process, so an earlier kill of
   * a page's process may explain a later SIGKILL by mistake.
   */
  #claimMemoryKill(own: ProcessBrowser): boolean {
    const now = countMemoryKills();
    if (now === null || own.memoryKills === null || now <= own.memoryKills) return false;
    for (const [, other] of this.#own.entries()) other.memoryKills = now;
    return true;
  }
}

/** Null for a browser that is being launched or removed: it cannot be adopted. */
function runningOf({ launched, removal }: ProcessBrowser): RunningBrowser | null {
  return removal === null ? (launched?.browser ?? null) : null;
}

async function endOf(name: string, child: Child) {
  return { ...(await child.exited), name, child };
}
