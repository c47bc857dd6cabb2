import type { Log } from '#src/telemetry/logger.ts';
import type {
  BrowserExit,
  Browsers,
  BrowserSpec,
  ObservedBrowser,
  RunningBrowser,
} from '../browsers.ts';
import { createAvailability } from './availability.ts';
import type { Availability } from './availability.ts';
import { lastWords, removeContainer } from './container.ts';
import { bounded, isAnswering, statusOf } from './engine.ts';
import { closedAtOf, endOf, newEntry, reasonOf } from './container-browser.ts';
import type { End, Entry } from './container-browser.ts';
import { findBrowser, listFound } from './find.ts';
import { launchContainer } from './launch.ts';
import type { Launched } from './launch.ts';
import { nameOf } from './naming.ts';
import type { Found } from './naming.ts';
import { openSite } from './site.ts';
import type { DockerSite, DockerSiteOptions } from './site.ts';
import { watchContainers } from './watch.ts';
import type { ContainerEvent, Watching } from './watch.ts';

/**
 * Browsers in containers of a Docker engine, each alone in its own: see docker-spec.ts for what
 * confines them and docker-isolation.ts for what they can reach. They outlive this process, and the
 * next one finds them by their labels.
 */
export type DockerBrowsersOptions = DockerSiteOptions & {
  /** How long a launch may take; 30,000 by default: cold starts under load have taken 3,000. */
  launchTimeoutMs?: number;
};

/**
 * Connects to the engine, builds the image where it is missing, and puts the network's rules in
 * force.
 * @throws DockerUnavailable saying what is wrong, and which variable would help
 */
export async function createDockerBrowsers(options: DockerBrowsersOptions): Promise<Browsers> {
  return browsersAt(await openSite(options), options);
}

/** The same on an engine that is ready. */
export async function browsersAt(
  site: DockerSite,
  { log, launchTimeoutMs = 30_000 }: Pick<DockerBrowsersOptions, 'log' | 'launchTimeoutMs'>,
): Promise<Browsers> {
  const browsers = new DockerBrowsers(site, launchTimeoutMs, log);
  await browsers.watch();
  return browsers;
}

class DockerBrowsers implements Browsers {
  readonly kind = 'docker';
  readonly #site: DockerSite;
  readonly #launchTimeoutMs: number;
  readonly #log: Pick<Log, 'warn'>;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners: ((exit: BrowserExit) => void)[] = [];
  readonly #availability: Availability;
  #watching: Watching | null = null;
  #closed = false;

  constructor(site: DockerSite, launchTimeoutMs: number, log: Pick<Log, 'warn'>) {
    this.#site = site;
    this.#launchTimeoutMs = launchTimeoutMs;
    this.#log = log;
    this.#availability = createAvailability(site.guard, log);
  }

  async watch(): Promise<void> {
    this.#watching = await watchContainers(this.#site.docker, this.#site.filter, {
      onEvent: (event) => this.#hear(event),
      onConnected: () => this.#comeBack(),
      onAway: (error) => {
        this.#log.warn({ err: error }, 'the Docker engine does not answer');
        this.#availability.away();
      },
    });
  }

  async launch(spec: BrowserSpec): Promise<RunningBrowser> {
    const { workloadId } = spec;
    if (this.#closed) throw new Error('launch after dispose');
    if (this.#entries.has(workloadId)) throw new Error(`workload ${workloadId} is already there`);
    const stopped = new AbortController();
    const { docker, confinement } = this.#site;
    const timeoutMs = this.#launchTimeoutMs;
    const bounds = { timeoutMs, stopped: stopped.signal };
    const launching = launchContainer(docker, confinement, spec, bounds);
    const entry = newEntry(stopped, launching);
    this.#entries.set(workloadId, entry);
    try {
      const launched = await launching;
      entry.launched = launched;
      if (entry.died !== null) this.#died(workloadId, entry, entry.died);
      return launched.browser;
    } catch (error) {
      this.#entries.delete(workloadId);
      if (!stopped.signal.aborted) await this.#noticeAbsence();
      throw error;
    }
  }

  async stop(workloadId: string): Promise<void> {
    const entry = this.#entries.get(workloadId);
    if (entry === undefined) return this.#stopLeftover(workloadId);
    entry.stopped.abort(new Error('stopped while it was being launched'));
    // A launch that fails has left nothing; what it failed with is its caller's.
    await entry.launching.catch(() => {});
    await this.#end(workloadId, entry);
  }

  async list(): Promise<ObservedBrowser[]> {
    const found = await this.#look();
    const listed = await Promise.all(found.map((one) => this.#observe(one)));
    const ids = new Set(found.map(({ workloadId }) => workloadId));
    const unmade = [...this.#entries.keys()].filter((workloadId) => !ids.has(workloadId));
    const none = { sessionId: null, adoptable: null };
    return [...listed, ...unmade.map((workloadId) => ({ workloadId, ...none }))];
  }

  async assign(workloadId: string, sessionId: string): Promise<void> {
    const entry = this.#entries.get(workloadId);
    if (entry === undefined || entry.launched === null) return;
    entry.sessionId = sessionId;
    const container = this.#site.docker.getContainer(entry.launched.containerId);
    try {
      await container.rename({ name: nameOf(workloadId, sessionId), ...bounded() });
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }

  async adopt(workloadId: string): Promise<RunningBrowser | null> {
    const own = this.#entries.get(workloadId);
    if (own !== undefined) return runningOf(own);
    const [found] = await listFound(this.#site, workloadId);
    const browser = found === undefined ? null : await findBrowser(found);
    if (found === undefined || browser === null) return null;
    const entry = newEntry(new AbortController(), Promise.resolve());
    entry.launched = { containerId: found.containerId, browser };
    entry.sessionId = found.sessionId;
    this.#entries.set(workloadId, entry);
    // It may have died before anybody listened for that.
    await this.#look();
    return this.#entries.has(workloadId) ? browser : null;
  }

  onExit(listener: (exit: BrowserExit) => void): void {
    this.#listeners.push(listener);
  }

  onAvailable(listener: (isAvailable: boolean) => void): void {
    this.#availability.onChange(listener);
  }

  async leave(): Promise<void> {
    await this.#close(([, entry]) => entry.launched === null || entry.ending !== null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close(() => true);
  }

  async #close(isToEnd: (entry: [string, Entry]) => boolean): Promise<void> {
    this.#closed = true;
    const ids = [...this.#entries].filter(isToEnd).map(([workloadId]) => workloadId);
    const ends = await Promise.allSettled(ids.map((id) => this.stop(id)));
    this.#availability[Symbol.dispose]();
    await this.#watching?.[Symbol.asyncDispose]();
    const failures = ends.filter((end) => end.status === 'rejected').map((end) => end.reason);
    if (failures.length > 0) throw new AggregateError(failures, 'browsers that did not end');
  }

  async #observe(found: Found): Promise<ObservedBrowser> {
    const { workloadId, sessionId, isRunning, containerId } = found;
    const entry = this.#entries.get(workloadId);
    if (entry !== undefined)
      return { workloadId, sessionId: entry.sessionId ?? sessionId, adoptable: runningOf(entry) };
    if (isRunning) return { workloadId, sessionId, adoptable: await findBrowser(found) };
    const closedAt = await closedAtOf(this.#site.docker.getContainer(containerId));
    const close = closedAt === null ? {} : { closedAt };
    return { workloadId, sessionId, adoptable: null, ...close };
  }

  async #stopLeftover(workloadId: string): Promise<void> {
    const found = await listFound(this.#site, workloadId);
    const { docker } = this.#site;
    await Promise.all(
      found.map(({ containerId }) => removeContainer(docker.getContainer(containerId))),
    );
  }

  /** One end for all who ask; after a failed one the next asks anew. */
  async #end(workloadId: string, entry: Entry): Promise<void> {
    if (entry.launched === null) return;
    const container = this.#site.docker.getContainer(entry.launched.containerId);
    entry.ending ??= removeContainer(container).then(() => void this.#entries.delete(workloadId));
    try {
      await entry.ending;
    } catch (error) {
      entry.ending = null;
      throw error;
    }
  }

  #hear({ workloadId, action, exitCode, at }: ContainerEvent): void {
    const entry = this.#entries.get(workloadId);
    if (entry === undefined) return;
    if (action === 'oom') entry.memoryKilledAt = performance.now();
    else this.#died(workloadId, entry, { exitCode, endedAt: at });
  }

  /** What failed because the engine is away is told after that, which its events may tell late. */
  async #noticeAbsence(): Promise<void> {
    if (await isAnswering(this.#site.docker)) return;
    this.#availability.away();
    this.#watching?.again();
  }

  async #comeBack(): Promise<void> {
    await this.#look();
    await this.#availability.back();
  }

  /** What the engine has; an end that was not heard of is known by it. */
  async #look(): Promise<Found[]> {
    const before = [...this.#entries].filter(([, { launched }]) => launched !== null);
    const found = await listFound(this.#site);
    const running = new Set(found.filter((one) => one.isRunning).map((one) => one.workloadId));
    for (const [workloadId, entry] of before)
      if (!running.has(workloadId))
        this.#died(workloadId, entry, { exitCode: null, endedAt: Date.now() });
    return found;
  }

  #died(workloadId: string, entry: Entry, end: End): void {
    entry.died ??= end;
    if (entry.launched === null || entry.stopped.signal.aborted) return;
    // Asked for by nobody; from here on it is as if somebody had.
    entry.stopped.abort();
    const { launched, died } = entry;
    this.#reportExit(workloadId, entry, launched, died).catch((error: unknown) =>
      this.#log.warn({ err: error, workloadId }, 'an exit was not told'),
    );
  }

  /** Reports an end without a stop, after the rest of the browser has been removed. */
  async #reportExit(
    workloadId: string,
    entry: Entry,
    { containerId }: Launched,
    heard: End,
  ): Promise<void> {
    const container = this.#site.docker.getContainer(containerId);
    // The engine knows the end that was not heard of, unless the container is removed already.
    const end = heard.exitCode === null ? ((await endOf(container)) ?? heard) : heard;
    const words = await lastWords(container).catch(String);
    let unfinished = '';
    try {
      await this.#end(workloadId, entry);
    } catch (error) {
      // It stays listed, and the next stop tries again.
      unfinished = `\n${String(error)}`;
    }
    const detail = `${words}${unfinished}`;
    const reason = reasonOf(entry, end.exitCode, words);
    for (const listener of this.#listeners) listener({ workloadId, reason, ...end, detail });
  }
}

/** What is still to be ended by somebody is nobody's to adopt. */
function runningOf({ launched, stopped }: Entry): RunningBrowser | null {
  return stopped.signal.aborted ? null : (launched?.browser ?? null);
}
