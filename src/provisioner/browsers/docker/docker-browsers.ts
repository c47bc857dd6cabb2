import type Docker from 'dockerode';
import type { Logger } from '#src/telemetry/logger.ts';
import { LaunchFailed } from '../browsers.ts';
import type { BrowserFolders, Browsers, BrowserSpec } from '../browsers.ts';
import { removeBrowsersOfGoneServers } from '../left-servers.ts';
import type { FoundPlace, ListedPlace, PlacedBrowser, PlaceEngine } from '../place-engine.ts';
import { PlacedBrowsers } from '../placed-browsers.ts';
import { profileBytes, readProfile, unpause } from './folders/profile-volume.ts';
import { createContainerFolders } from './folders/container-folders.ts';
import { buildBrowserImage } from './browser-image.ts';
import { removeOldImages } from './old-images.ts';
import { lastOutput, memoryUsedBy, removeContainer } from './container.ts';
import { closedAtOf, readExit, type ContainerExit } from './container-exit.ts';
import { bounded, isAnswering, messageOf, statusOf } from './engine.ts';
import { browsersOfAll, findBrowser, listContainers, type FoundContainer } from './find.ts';
import { launchContainer, type Launched } from './launch.ts';
import { nameOf } from './naming.ts';
import { keepFresh } from './current-image.ts';
import type { Confinement } from './spec.ts';
import { openSite, type DockerSite, type DockerSiteOptions } from './site.ts';
import { watchContainers, type ContainerEvent, type ContainerWatcher } from './watch.ts';

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
    await removeBrowsersOfGoneServers(() => browsersOfAll(site.docker), { own, isGone, log });
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
export function browsersAt(
  site: DockerSite,
  { log, launchTimeoutMs = 30_000 }: Pick<DockerBrowsersOptions, 'log' | 'launchTimeoutMs'>,
): Promise<ContainerBrowsers> {
  const engineFor = (browsers: ContainerBrowsers) => new ContainerEngine(site, browsers, log);
  return new PlacedBrowsers(engineFor, { log, launchTimeoutMs }).watch();
}

type ContainerBrowsers = PlacedBrowsers<Launched, ContainerExit>;
type ContainerBrowser = PlacedBrowser<Launched, ContainerExit>;

/** A kill for lack of memory explains an exit that follows within this. */
const MEMORY_KILL_MS = 5_000;

class ContainerEngine implements PlaceEngine<Launched, ContainerExit> {
  readonly kind = 'docker';
  readonly folders: BrowserFolders;
  readonly guard: DockerSite['guard'];
  readonly image: DockerSite['image'];
  readonly memoryBytes: number;
  readonly #site: DockerSite;
  readonly #browsers: ContainerBrowsers;
  readonly #log: Pick<Logger, 'warn'>;
  /** When the kernel last killed a process of it for lack of memory, on the monotonic clock. */
  readonly #memoryKilledAt = new WeakMap<ContainerBrowser, number>();

  constructor(site: DockerSite, browsers: ContainerBrowsers, log: Pick<Logger, 'warn'>) {
    this.#site = site;
    this.#browsers = browsers;
    this.#log = log;
    this.guard = site.guard;
    this.image = site.image;
    this.memoryBytes = site.confinement.limits.memoryBytes;
    this.folders = createContainerFolders((workloadId) => {
      const launched = browsers.get(workloadId)?.launched ?? null;
      return launched === null ? null : this.#containerOf(launched);
    });
    // The network's probes run from it too; the first one may be removed some day.
    site.image.onChange(({ name }) => (site.confinement.image = name));
  }

  watch(): Promise<ContainerWatcher> {
    return watchContainers(this.#site.docker, this.#site.filter, {
      onEvent: (event) => this.#handleEvent(event),
      onConnected: async () => {
        await this.list();
        await this.#browsers.engineBack();
      },
      onDisconnected: (error) => {
        this.#log.warn({ err: error }, 'Docker engine unavailable');
        this.#browsers.engineLost();
      },
    });
  }

  isAnswering(): Promise<boolean> {
    return isAnswering(this.#site.docker);
  }

  async launch(
    spec: BrowserSpec,
    bounds: { timeoutMs: number; stopped: AbortSignal },
  ): Promise<Launched> {
    const confinement = await this.#confinementFor(spec);
    return launchContainer(this.#site.docker, confinement, spec, bounds);
  }

  async remove(workloadId: string, launched: Launched | null): Promise<void> {
    const left = launched === null ? await listContainers(this.#site, workloadId) : [launched];
    await Promise.all(left.map((one) => removeContainer(this.#containerOf(one))));
  }

  /** Also handles the exits that no event has reported. */
  async list(): Promise<ListedPlace[]> {
    const before = this.#browsers.launched();
    const found = await listContainers(this.#site);
    const running = new Set(found.filter((one) => one.isRunning).map((one) => one.workloadId));
    for (const own of before)
      if (!running.has(own.workloadId))
        this.#browsers.handleExit(own, { exitCode: null, endedAt: Date.now() });
    return found.map((one) => ({ ...one, look: () => this.#look(one) }));
  }

  async find(
    workloadId: string,
    hasProxy: boolean,
  ): Promise<FoundPlace<Launched, ContainerExit> | null> {
    const [found] = await listContainers(this.#site, workloadId);
    const browser = found === undefined ? null : await findBrowser(found);
    if (found === undefined || browser === null) return null;
    // From now on its network is checked too.
    if (hasProxy) this.#watchClosed();
    const { containerId, imageId: image, hasProfile: keepsProfile, sessionId, egress } = found;
    const launched = { containerId, browser, egress };
    // It may have ended before its events were listened to.
    const catchUp = async () => void (await this.list());
    return { launched, sessionId, image, keepsProfile, catchUp };
  }

  async label(launched: Launched, sessionId: string, before: string | null): Promise<void> {
    if (before === sessionId) return;
    try {
      const name = nameOf(launched.browser.workloadId, sessionId);
      await this.#containerOf(launched).rename({ name, ...bounded() });
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }

  async explain(own: ContainerBrowser, launched: Launched, observed: ContainerExit) {
    const container = this.#containerOf(launched);
    // The engine knows an exit that no event has reported, unless the container is removed already.
    const exit = observed.exitCode === null ? ((await readExit(container)) ?? observed) : observed;
    const output = await lastOutput(container).catch(String);
    const killedAt = this.#memoryKilledAt.get(own) ?? -Infinity;
    const isMemoryKill = performance.now() - killedAt < MEMORY_KILL_MS;
    return { ...exit, isMemoryKill, output, told: '' };
  }

  memoryUsed(launched: Launched): Promise<number | null> {
    return memoryUsedBy(this.#containerOf(launched));
  }

  profileBytes(launched: Launched): Promise<number | null> {
    return profileBytes(this.#containerOf(launched));
  }

  readProfile(launched: Launched, _: boolean, signal: AbortSignal): AsyncIterable<Uint8Array> {
    return readProfile(this.#containerOf(launched), signal);
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

  #watchClosed(): void {
    this.#site.closed
      .open()
      .catch((error: unknown) =>
        this.#log.warn({ err: error }, 'the network of browsers with egress rules is not closed'),
      );
  }

  async #look(found: FoundContainer) {
    const container = this.#containerOf(found);
    if (found.isPaused) await unpause(container);
    if (found.isRunning) return { adoptable: await findBrowser(found) };
    const closedAt = await closedAtOf(container);
    return { adoptable: null, ...(closedAt !== null && { closedAt }) };
  }

  #handleEvent({ workloadId, action, exitCode, at }: ContainerEvent): void {
    const own = this.#browsers.get(workloadId);
    if (own === undefined) return;
    if (action === 'oom') this.#memoryKilledAt.set(own, performance.now());
    else this.#browsers.handleExit(own, { exitCode, endedAt: at });
  }

  #containerOf({ containerId }: Pick<Launched, 'containerId'>): Docker.Container {
    return this.#site.docker.getContainer(containerId);
  }
}
