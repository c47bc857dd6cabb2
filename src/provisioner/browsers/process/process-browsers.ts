import { setTimeout as delay } from 'node:timers/promises';
import type {
  BrowserExit,
  Browsers,
  BrowserSpec,
  ObservedBrowser,
  RunningBrowser,
} from '../browsers.ts';
import { countMemoryKills } from './oom.ts';
import type { Child } from './child.ts';
import { findPrograms, prepareFolders } from './programs.ts';
import type { BrowserUser, Programs } from './programs.ts';
import { openRecords } from './records.ts';
import { describeExit, endLeftover, endWorkload, startWorkload, wasClosed } from './launch.ts';
import type { Site, Workload } from './launch.ts';

/**
 * Browsers as plain child processes on loopback: headful Chromium, each on an X server of its own.
 * For development and tests: Chromium's own sandbox is on, but browsers share the machine's network
 * and files with the service.
 */
export type ProcessBrowsersOptions = Programs & {
  /** The folder, for nothing else, of what this service must know after it was killed. */
  stateDir: string;
  /** How long a launch may take; 15,000 by default. */
  launchTimeoutMs?: number;
  /**
   * Whom browsers run as. Default: nobody where the service is root, else the service's own user.
   */
  uid?: { uid: number; gid: number };
};

/** Chromium's sandbox refuses root. These numbers are nobody's on every Linux. */
const NOBODY = { uid: 65_534, gid: 65_534 };
const DETAIL_CHARS_MAX = 2048;
/** Within this a browser's two programs are known to have ended together. */
const OTHER_END_MS = 100;

/**
 * @throws BrowsersUnavailable when a program is missing, or cannot be run by the user that browsers
 * run as
 */
export async function createProcessBrowsers(options: ProcessBrowsersOptions): Promise<Browsers> {
  const user: BrowserUser = options.uid ?? (process.getuid?.() === 0 ? NOBODY : undefined);
  const [programs, tmp] = await Promise.all([findPrograms(options, user), prepareFolders(user)]);
  const launchTimeoutMs = options.launchTimeoutMs ?? 15_000;
  const records = openRecords(options.stateDir);
  return new ProcessBrowsers({ programs, user, tmp, records, launchTimeoutMs });
}

/** Launching until `browser` is set, ending once `ending` is; gone when it leaves the map. */
type Entry = {
  stopped: AbortController;
  launched: Promise<unknown>;
  workload: Workload | null;
  browser: RunningBrowser | null;
  sessionId: string | null;
  ending: Promise<void> | null;
  /** The kernel's count of memory kills that this browser's own end is compared with. */
  memoryKills: number | null;
};

class ProcessBrowsers implements Browsers {
  readonly kind = 'process';
  readonly #site: Site;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners: ((exit: BrowserExit) => void)[] = [];
  #closed = false;

  constructor(site: Site) {
    this.#site = site;
  }

  async launch(spec: BrowserSpec): Promise<RunningBrowser> {
    const { workloadId } = spec;
    if (this.#closed) throw new Error('launch after dispose');
    if (this.#entries.has(workloadId)) throw new Error(`workload ${workloadId} is already there`);
    const stopped = new AbortController();
    const launched = startWorkload(this.#site, spec, stopped.signal);
    const entry: Entry = {
      stopped,
      launched,
      workload: null,
      browser: null,
      sessionId: null,
      ending: null,
      memoryKills: countMemoryKills(),
    };
    this.#entries.set(workloadId, entry);
    try {
      const { workload, browser } = await launched;
      Object.assign(entry, { workload, browser });
      void this.#watch(workloadId, entry, workload);
      return browser;
    } catch (error) {
      this.#entries.delete(workloadId);
      throw error;
    }
  }

  async stop(workloadId: string): Promise<void> {
    const entry = this.#entries.get(workloadId);
    if (entry === undefined) return this.#stopLeftover(workloadId);
    entry.stopped.abort(new Error('stopped while it was being launched'));
    // A launch that fails has left nothing; what it failed with is its caller's.
    await entry.launched.catch(() => {});
    await this.#end(workloadId, entry);
  }

  async list(): Promise<ObservedBrowser[]> {
    const own = [...this.#entries].map(([workloadId, entry]) => ({
      workloadId,
      sessionId: entry.sessionId,
      adoptable: entry.ending === null ? entry.browser : null,
    }));
    const records = this.#site.records.present();
    const left = records.filter(({ workloadId }) => !this.#entries.has(workloadId));
    const none = { sessionId: null, adoptable: null };
    return [...own, ...left.map(({ workloadId }) => ({ workloadId, ...none }))];
  }

  async assign(workloadId: string, sessionId: string): Promise<void> {
    const entry = this.#entries.get(workloadId);
    if (entry !== undefined) entry.sessionId = sessionId;
  }

  /** What another process has left is not known well enough to be used. */
  async adopt(workloadId: string): Promise<RunningBrowser | null> {
    const entry = this.#entries.get(workloadId);
    return entry?.ending === null ? entry.browser : null;
  }

  onExit(listener: (exit: BrowserExit) => void): void {
    this.#listeners.push(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const ends = await Promise.allSettled([...this.#entries.keys()].map((id) => this.stop(id)));
    const failures = ends.filter((end) => end.status === 'rejected').map((end) => end.reason);
    if (failures.length > 0) throw new AggregateError(failures, 'browsers that did not end');
  }

  async #stopLeftover(workloadId: string): Promise<void> {
    const records = this.#site.records.present();
    const record = records.find((candidate) => candidate.workloadId === workloadId);
    if (record !== undefined) await endLeftover(this.#site, record);
  }

  /** One end for all who ask; after a failed one the next asks anew. */
  async #end(workloadId: string, entry: Entry): Promise<void> {
    if (entry.workload === null) return;
    entry.ending ??= endWorkload(this.#site, entry.workload).then(
      () => void this.#entries.delete(workloadId),
    );
    try {
      await entry.ending;
    } catch (error) {
      entry.ending = null;
      throw error;
    }
  }

  /** Reports an end without a stop, after the rest of the browser has been ended. */
  async #watch(workloadId: string, entry: Entry, workload: Workload): Promise<void> {
    const { chromium, display } = workload;
    const ends = [endOf('Chromium', chromium)];
    if (display !== null) ends.unshift(endOf('X server', display.child));
    const first = await Promise.race(ends);
    const endedAt = Date.now();
    // Chromium ends with its X server, never the other way: whose end is heard first says nothing.
    const end = await Promise.race([...ends.slice(0, -1), delay(OTHER_END_MS, first)]);
    // Its profile says so, which is removed with the rest of it.
    const isClosed = end.child === chromium && (await wasClosed(this.#site, workload, end));
    if (entry.stopped.signal.aborted) return;
    let reason: BrowserExit['reason'] = isClosed ? 'browser_closed' : 'browser_crashed';
    if (end.signal === 'SIGKILL' && this.#claimMemoryKill(entry)) reason = 'out_of_memory';
    let unfinished = '';
    try {
      await this.#end(workloadId, entry);
    } catch (error) {
      // It stays listed, and the next stop tries again.
      unfinished = `\n${String(error)}`;
    }
    const words = `${end.name}: ${describeExit(end)}${unfinished}\n`;
    const exit: BrowserExit = {
      workloadId,
      reason,
      exitCode: end.exitCode,
      endedAt,
      detail: words + end.child.tail().slice(-(DETAIL_CHARS_MAX - words.length)),
    };
    for (const listener of this.#listeners) listener(exit);
  }

  /**
   * Whether the kernel killed somebody for want of memory since this browser's launch or since the
   * last such kill that was explained. It does not say whom, so a page's process killed earlier can
   * lend its reason to a later kill.
   */
  #claimMemoryKill(entry: Entry): boolean {
    const now = countMemoryKills();
    if (now === null || entry.memoryKills === null || now <= entry.memoryKills) return false;
    for (const other of this.#entries.values()) other.memoryKills = now;
    return true;
  }
}

async function endOf(name: string, child: Child) {
  return { ...(await child.exited), name, child };
}
