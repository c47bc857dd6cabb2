import type { Logger } from '#src/telemetry/logger.ts';
import { LaunchFailed } from '../browsers.ts';
import type { EgressEndpoint } from '../egress-endpoint.ts';
import type {
  BrowserBuild,
  BrowserExit,
  BrowserFolders,
  Browsers,
  BrowserSpec,
  ObservedBrowser,
  RunningBrowser,
} from '../browsers.ts';
import { closeWithin, createPlacedBrowser, OwnBrowsers, runningOf } from '../own-browsers.ts';
import { profileBytes, readProfile, unpause } from './folders/profile-volume.ts';
import { createContainerFolders } from './folders/container-folders.ts';
import { createAvailability } from '../availability.ts';
import { buildBrowserImage } from './browser-image.ts';
import { removeOldImages } from './old-images.ts';
import type { Availability } from '../availability.ts';
import { lastOutput, memoryUsedBy, removeContainer } from './container.ts';
import { closedAtOf, readExit, reasonOf } from './container-browser.ts';
import type { ContainerBrowser, ContainerExit } from './container-browser.ts';
import { serveEgress } from '../relay-connections.ts';
import { bounded, isAnswering, messageOf, statusOf } from './engine.ts';
import { findBrowser, listContainers } from './find.ts';
import type { FoundContainer } from './find.ts';
import { removeBrowsersOfGoneServers } from './left-servers.ts';
import { launchContainer } from './launch.ts';
import type { Launched } from './launch.ts';
import { nameOf } from './naming.ts';
import { keepFresh } from './current-image.ts';
import type { Confinement } from './spec.ts';
import { openSite } from './site.ts';
import type { DockerSite, DockerSiteOptions } from './site.ts';
import { watchContainers } from './watch.ts';
import type { ContainerEvent, ContainerWatcher } from './watch.ts';

/**
 * Browsers in containers of a Docker engine, one browser in each: spec.ts confines a container,
 * isolation.ts limits what it can reach. Containers outlive this process; the next one finds them
 * by their labels.
 */
export type DockerBrowsersOptions = DockerSiteOptions & {
  /** The longest duration of a launch; 30,000 by default: cold starts under load took 3,000. */
  launchTimeoutMs?: number;
  /** Whether another server has left or was lost, and does not run: its browsers are removed. */
  isServerGone?: (serverId: string) => Promise<boolean>;
};

/**
 * Connects to the engine, builds a missing image, and puts the network's rules in force.
 * @throws DockerUnavailable with the cause and the variable that would help
 */
export async function createDockerBrowsers(options: DockerBrowsersOptions): Promise<Browsers> {
  const site = await openSite(options);
  const { serverId: own, isServerGone: isGone, log } = options;
  if (isGone !== undefined)
    await removeBrowsersOfGoneServers(site.docker, { own, isGone, log }).catch((error: unknown) =>
      log.warn({ err: error }, 'failed to look for browsers of servers that are gone'),
    );
  const { name, hasRelay } = site.image.now();
  if (!hasRelay)
    log.warn({ image: name }, 'the browser image has no relay: no session gets egress rules');
  const browsers = await browsersAt(site, options);
  const { image: given, rebuildMs = null } = options;
  const rebuild = async (how: { print: (line: string) => void; signal: AbortSignal }) => {
    const common = { isFresh: true, isLowPriority: true };
    const { name, version } = await buildBrowserImage(site.docker, { ...common, ...how });
    const removed = await removeOldImages(site.docker);
    log.info({ image: name, version, removed }, 'the browser image was rebuilt');
  };
  // The operator's image is not built here; a newer one is noticed.
  const everyMs = given === null ? rebuildMs : null;
  browsers.ends(keepFresh({ image: site.image, rebuild, rebuildMs: everyMs, log }));
  return browsers;
}

/** Creates the browsers on an engine that is ready. */
export async function browsersAt(
  site: DockerSite,
  { log, launchTimeoutMs = 30_000 }: Pick<DockerBrowsersOptions, 'log' | 'launchTimeoutMs'>,
): Promise<DockerBrowsers> {
  const browsers = new DockerBrowsers(site, launchTimeoutMs, log);
  await browsers.watch();
  return browsers;
}

class DockerBrowsers implements Browsers {
  readonly kind = 'docker';
  readonly #site: DockerSite;
  readonly #launchTimeoutMs: number;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #own = new OwnBrowsers<ContainerBrowser>(({ launched }, workloadId) =>
    launched === null
      ? this.#stopLeftover(workloadId)
      : removeContainer(this.#containerOf(launched)),
  );
  /** Also of a browser that has ended, as long as its container is there. */
  readonly folders: BrowserFolders = createContainerFolders((workloadId) => {
    const launched = this.#own.get(workloadId)?.launched ?? null;
    return launched === null ? null : this.#containerOf(launched);
  });
  readonly #availability: Availability;
  readonly #ending = new DisposableStack();
  #watcher: ContainerWatcher | null = null;

  constructor(site: DockerSite, launchTimeoutMs: number, log: Pick<Logger, 'warn'>) {
    this.#site = site;
    this.#launchTimeoutMs = launchTimeoutMs;
    this.#log = log;
    this.#availability = createAvailability(site.guard, log);
    // The network's probes run from it too; the first one may be removed some day.
    site.image.onChange(({ name }) => (site.confinement.image = name));
  }

  /** Disposes of it when the browsers end. */
  ends(part: Disposable): void {
    this.#ending.use(part);
  }

  /** Of browsers that are launched from now on. */
  get egress(): 'network' | undefined {
    return this.#site.image.now().hasRelay ? 'network' : undefined;
  }

  build(): BrowserBuild {
    const { version, builtAt } = this.#site.image.now();
    return { version, builtAt };
  }

  onBuild(listener: () => void): void {
    this.#site.image.onChange(listener);
  }

  isOutdated(workloadId: string): boolean {
    const own = this.#own.get(workloadId);
    return own !== undefined && own.image !== this.#site.image.now().id;
  }

  async watch(): Promise<void> {
    this.#watcher = await watchContainers(this.#site.docker, this.#site.filter, {
      onEvent: (event) => this.#handleEvent(event),
      onConnected: () => this.#reconnected(),
      onDisconnected: (error) => {
        this.#log.warn({ err: error }, 'Docker engine unavailable');
        this.#availability.engineLost();
      },
    });
  }

  async launch(spec: BrowserSpec): Promise<RunningBrowser> {
    const { workloadId } = spec;
    this.#own.assertCanLaunch(workloadId);
    const stopped = new AbortController();
    const { docker } = this.#site;
    const timeoutMs = this.#launchTimeoutMs;
    const bounds = { timeoutMs, stopped: stopped.signal };
    const launching = this.#confinementFor(spec).then((confinement) =>
      launchContainer(docker, confinement, spec, bounds),
    );
    const given = { image: this.#site.image.now().id, keepsProfile: spec.profile !== undefined };
    const placed = createPlacedBrowser(stopped, launching, given);
    const own: ContainerBrowser = { ...placed, memoryKilledAt: null };
    this.#own.set(workloadId, own);
    try {
      const launched = await launching;
      own.launched = launched;
      serveEgress(launched, spec.egress, stopped.signal);
      if (own.exit !== null) this.#handleExit(workloadId, own, own.exit);
      return launched.browser;
    } catch (error) {
      this.#own.delete(workloadId);
      if (!stopped.signal.aborted) await this.#checkEngine();
      throw error;
    }
  }

  /** From now on the network of an adopted browser is checked too. */
  #watchClosed(): void {
    this.#site.closed
      .open()
      .catch((error: unknown) =>
        this.#log.warn({ err: error }, 'the network of browsers with egress rules is not closed'),
      );
  }

  /** A browser with a proxy is on a network of its own kind, which has no way out. */
  async #confinementFor({ egress }: BrowserSpec): Promise<Confinement> {
    const { confinement, closed, image } = this.#site;
    if (egress === undefined) return confinement;
    try {
      return { ...confinement, ...(await closed.openFor(image.now())) };
    } catch (error) {
      throw new LaunchFailed(`EGRESS_UNAVAILABLE: ${messageOf(error)}`, '');
    }
  }

  async stop(workloadId: string): Promise<void> {
    const own = this.#own.get(workloadId);
    await (own === undefined ? this.#stopLeftover(workloadId) : this.#own.stop(workloadId, own));
  }

  close(workloadId: string, withinMs: number): Promise<boolean> {
    return closeWithin(this.#own.get(workloadId), withinMs);
  }

  readProfile(workloadId: string, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const own = this.#own.get(workloadId);
    if (own?.launched === undefined || own.launched === null || !own.keepsProfile)
      throw new Error(`${workloadId} has no profile here`);
    return readProfile(this.#containerOf(own.launched), signal);
  }

  async list(): Promise<ObservedBrowser[]> {
    const found = await this.#listAndCheckExits();
    const listed = await Promise.all(found.map((one) => this.#observe(one)));
    const ids = new Set(found.map(({ workloadId }) => workloadId));
    const launching = this.#own.entries().filter(([workloadId]) => !ids.has(workloadId));
    const none = { sessionId: null, adoptable: null };
    return [...listed, ...launching.map(([workloadId]) => ({ workloadId, ...none }))];
  }

  async assign(workloadId: string, sessionId: string): Promise<void> {
    const own = this.#own.get(workloadId);
    if (own === undefined || own.launched === null || own.sessionId === sessionId) return;
    own.sessionId = sessionId;
    try {
      const name = nameOf(workloadId, sessionId);
      await this.#containerOf(own.launched).rename({ name, ...bounded() });
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }

  async memoryUsed(workloadId: string): Promise<number | null> {
    const launched = this.#own.get(workloadId)?.launched ?? null;
    return launched === null ? null : memoryUsedBy(this.#containerOf(launched));
  }

  /** Without a profile all of it is in the container's memory. */
  async storedBytes(workloadId: string): Promise<number | null> {
    const own = this.#own.get(workloadId);
    if (own?.launched === undefined || own.launched === null || !own.keepsProfile) return null;
    return profileBytes(this.#containerOf(own.launched));
  }

  async adopt(workloadId: string, egress?: EgressEndpoint): Promise<RunningBrowser | null> {
    const known = this.#own.get(workloadId);
    if (known !== undefined) return runningOf(known);
    const [found] = await listContainers(this.#site, workloadId);
    const browser = found === undefined ? null : await findBrowser(found);
    if (found === undefined || browser === null) return null;
    const { containerId, imageId: image, hasProfile: keepsProfile, sessionId } = found;
    const given = { image, keepsProfile };
    const placed = createPlacedBrowser(new AbortController(), Promise.resolve(), given);
    const launched = { containerId, browser, egress: found.egress };
    const own: ContainerBrowser = { ...placed, launched, sessionId, memoryKilledAt: null };
    serveEgress(launched, egress, own.stopped.signal);
    if (egress !== undefined) this.#watchClosed();
    this.#own.set(workloadId, own);
    // It may have ended before its events were listened to.
    await this.#listAndCheckExits();
    return this.#own.get(workloadId) === undefined ? null : browser;
  }

  onExit(listener: (exit: BrowserExit) => void): void {
    this.#own.onExit(listener);
  }

  onAvailable(listener: (isAvailable: boolean) => void): void {
    this.#availability.onChange(listener);
  }

  async leave(): Promise<void> {
    await this.#close(({ launched, removal }) => launched === null || removal !== null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close(() => true);
  }

  async #close(mustStop: (own: ContainerBrowser) => boolean): Promise<void> {
    try {
      await this.#own.close(mustStop);
    } finally {
      this.#ending.dispose();
      this.#availability[Symbol.dispose]();
      await this.#watcher?.[Symbol.asyncDispose]();
    }
  }

  #containerOf({ containerId }: Pick<Launched, 'containerId'>) {
    return this.#site.docker.getContainer(containerId);
  }

  async #observe(found: FoundContainer): Promise<ObservedBrowser> {
    const { workloadId, sessionId, isRunning } = found;
    const own = this.#own.get(workloadId);
    if (own !== undefined)
      return { workloadId, sessionId: own.sessionId ?? sessionId, adoptable: runningOf(own) };
    if (found.isPaused) await unpause(this.#containerOf(found));
    if (isRunning) return { workloadId, sessionId, adoptable: await findBrowser(found) };
    const closedAt = await closedAtOf(this.#containerOf(found));
    const close = closedAt === null ? {} : { closedAt };
    return { workloadId, sessionId, adoptable: null, ...close };
  }

  /** Removes a container of an earlier process, or one that a failed launch could not remove. */
  async #stopLeftover(workloadId: string): Promise<void> {
    const found = await listContainers(this.#site, workloadId);
    await Promise.all(found.map((one) => removeContainer(this.#containerOf(one))));
  }

  #handleEvent({ workloadId, action, exitCode, at }: ContainerEvent): void {
    const own = this.#own.get(workloadId);
    if (own === undefined) return;
    if (action === 'oom') own.memoryKilledAt = performance.now();
    else this.#handleExit(workloadId, own, { exitCode, endedAt: at });
  }

  /** After a failed launch: reports a lost engine at once, since the event stream may lag. */
  async #checkEngine(): Promise<void> {
    if (await isAnswering(this.#site.docker)) return;
    this.#availability.engineLost();
    this.#watcher?.reconnect();
  }

  async #reconnected(): Promise<void> {
    await this.#listAndCheckExits();
    await this.#availability.engineBack();
  }

  /** Lists this server's containers, and handles the exits that no event has reported. */
  async #listAndCheckExits(): Promise<FoundContainer[]> {
    const before = this.#own.entries().filter(([, { launched }]) => launched !== null);
    const found = await listContainers(this.#site);
    const running = new Set(found.filter((one) => one.isRunning).map((one) => one.workloadId));
    for (const [workloadId, own] of before)
      if (!running.has(workloadId))
        this.#handleExit(workloadId, own, { exitCode: null, endedAt: Date.now() });
    return found;
  }

  #handleExit(workloadId: string, own: ContainerBrowser, exit: ContainerExit): void {
    own.exit ??= exit;
    if (own.launched === null || own.stopped.signal.aborted) return;
    // From here on it counts as stopped, so that its exit is reported once.
    own.stopped.abort();
    this.#reportExit(workloadId, own, own.launched, own.exit).catch((error: unknown) =>
      this.#log.warn({ err: error, workloadId }, 'failed to report the end of a browser'),
    );
  }

  /** Reports an end without a stop, after the rest of the browser has been removed. */
  async #reportExit(
    workloadId: string,
    own: ContainerBrowser,
    launched: Launched,
    observed: ContainerExit,
  ): Promise<void> {
    const container = this.#containerOf(launched);
    // The engine knows an exit that no event has reported, unless the container is removed already.
    const exit = observed.exitCode === null ? ((await readExit(container)) ?? observed) : observed;
    const output = await lastOutput(container).catch(String);
    const reason = reasonOf(own, exit.exitCode, output);
    const hasProfile = reason === 'browser_closed' && own.keepsProfile;
    const unfinished = hasProfile ? '' : await this.#own.removeAfterExit(workloadId, own);
    own.ended.resolve(reason);
    // The kernel kills for lack of memory once all that a container may use is in use.
    const { memoryBytes } = this.#site.confinement.limits;
    const more = {
      ...(reason === 'out_of_memory' && { memoryPeakBytes: memoryBytes }),
      ...(hasProfile && { hasProfile }),
    };
    const ended = { workloadId, reason, ...exit, ...more, detail: output + unfinished };
    this.#own.reportExit(ended);
  }
}
