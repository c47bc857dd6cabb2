import { LaunchFailed } from '../browsers.ts';
import type { Browsers, BrowserSpec } from '../browsers.ts';
import { removeBrowsersOfGoneServers } from '../left-servers.ts';
import type { PlaceEngine } from '../place-engine.ts';
import { PlacedBrowsers } from '../placed-browsers.ts';
import { profileBytes, readProfile } from './folders/profile-volume.ts';
import { createContainerFolders } from './folders/container-folders.ts';
import { buildBrowserImage } from './browser-image.ts';
import { removeOldImages } from './old-images.ts';
import { lastOutput, memoryUsedBy, removeContainer } from './container.ts';
import { readExit, type ContainerExit } from './container-exit.ts';
import { bounded, isAnswering, messageOf, statusOf } from './engine.ts';
import { browsersOfAll, findBrowser, listContainers, look, type FoundContainer } from './find.ts';
import { launchContainer, type Launched } from './launch.ts';
import { nameOf } from './naming.ts';
import { keepFresh } from './current-image.ts';
import type { Confinement } from './spec.ts';
import { openSite, type DockerSite, type DockerSiteOptions } from './site.ts';
import { watchContainers, type WatchHandlers } from './watch.ts';

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
  // The network's probes run from it too; the first one may be removed some day.
  site.image.onChange(({ name }) => (site.confinement.image = name));
  const engineFor = (known: ContainerBrowsers) => containerEngine(site, known);
  return new PlacedBrowsers(engineFor, { log, launchTimeoutMs }).watch();
}

type ContainerBrowsers = PlacedBrowsers<Launched, ContainerExit>;

function containerEngine(
  site: DockerSite,
  known: ContainerBrowsers,
): PlaceEngine<Launched, ContainerExit> {
  const { docker, confinement, image, guard } = site;
  const containerOf = ({ containerId }: { containerId: string }) =>
    docker.getContainer(containerId);

  /** Also handles the exits that no event has reported. */
  async function list(): Promise<FoundContainer[]> {
    const before = known.own.entries().filter(([, { launched }]) => launched !== null);
    const found = await listContainers(site);
    const running = new Set(found.filter((one) => one.isRunning).map((one) => one.workloadId));
    for (const [workloadId, own] of before)
      if (!running.has(workloadId))
        known.handleExit(workloadId, own, { exitCode: null, endedAt: Date.now() });
    return found;
  }

  return {
    kind: 'docker',
    image,
    guard,
    memoryBytes: confinement.limits.memoryBytes,
    folders: createContainerFolders((workloadId) => {
      const launched = known.own.get(workloadId)?.launched ?? null;
      return launched === null ? null : containerOf(launched);
    }),
    isAnswering: () => isAnswering(docker),
    ...following(site, known, list),
    async launch(spec, bounds) {
      return launchContainer(docker, await confinementFor(site, spec), spec, bounds);
    },
    async remove(workloadId, launched) {
      const left = launched === null ? await listContainers(site, workloadId) : [launched];
      await Promise.all(left.map((one) => removeContainer(containerOf(one))));
    },
    async list() {
      return (await list()).map((one) => ({ ...one, look: () => look(site, one) }));
    },
    async find(workloadId, hasProxy) {
      const [found] = await listContainers(site, workloadId);
      const browser = found === undefined ? null : await findBrowser(found);
      if (found === undefined || browser === null) return null;
      if (hasProxy) watchClosed(site, known);
      const { containerId, imageId, hasProfile: keepsProfile, sessionId, egress } = found;
      const launched = { containerId, browser, egress };
      return {
        place: { launched, sessionId, image: imageId, keepsProfile },
        // It may have ended before its events were listened to.
        catchUp: async () => void (await list()),
      };
    },
    async label(launched, sessionId, before) {
      if (before === sessionId) return;
      try {
        const name = nameOf(launched.browser.workloadId, sessionId);
        await containerOf(launched).rename({ name, ...bounded() });
      } catch (error) {
        if (statusOf(error) !== 404) throw error;
      }
    },
    memoryUsed: (launched) => memoryUsedBy(containerOf(launched)),
    profileBytes: (launched) => profileBytes(containerOf(launched)),
    readProfile: (launched, _, signal) => readProfile(containerOf(launched), signal),
  };
}

/** A kill for lack of memory explains an exit that follows within this. */
const MEMORY_KILL_MS = 5_000;

/** Tells of the ends of containers, and explains them. */
function following(
  { docker, filter }: DockerSite,
  known: ContainerBrowsers,
  list: () => Promise<unknown>,
): Pick<PlaceEngine<Launched, ContainerExit>, 'watch' | 'explain'> {
  /** When the kernel last killed a process of it for lack of memory, on the monotonic clock. */
  const memoryKilledAt = new WeakMap<object, number>();
  const handlers: WatchHandlers = {
    onEvent({ workloadId, action, exitCode, at }) {
      const own = known.own.get(workloadId);
      if (own === undefined) return;
      if (action === 'oom') memoryKilledAt.set(own, performance.now());
      else known.handleExit(workloadId, own, { exitCode, endedAt: at });
    },
    async onConnected() {
      await list();
      await known.availability.engineBack();
    },
    onDisconnected(error) {
      known.log.warn({ err: error }, 'Docker engine unavailable');
      known.availability.engineLost();
    },
  };
  return {
    watch: () => watchContainers(docker, filter, handlers),
    async explain(own, { containerId }, seen) {
      const container = docker.getContainer(containerId);
      // The engine knows an exit that no event has reported, unless the container is gone already.
      const exit = seen.exitCode === null ? ((await readExit(container)) ?? seen) : seen;
      const output = await lastOutput(container).catch(String);
      const killedAt = memoryKilledAt.get(own) ?? -Infinity;
      const isMemoryKill = performance.now() - killedAt < MEMORY_KILL_MS;
      return { ...exit, isMemoryKill, output, told: '' };
    },
  };
}

/** A browser with a proxy is on a network of its own kind, which has no way out. */
async function confinementFor(
  { confinement, closed, image }: DockerSite,
  { egress }: BrowserSpec,
): Promise<Confinement> {
  if (egress === undefined) return confinement;
  try {
    return { ...confinement, ...(await closed.openFor(image.now())) };
  } catch (error) {
    throw new LaunchFailed(`EGRESS_UNAVAILABLE: ${messageOf(error)}`, '');
  }
}

/** From now on the network of an adopted browser is checked too. */
function watchClosed({ closed }: DockerSite, { log }: ContainerBrowsers): void {
  closed
    .open()
    .catch((error: unknown) =>
      log.warn({ err: error }, 'the network of browsers with egress rules is not closed'),
    );
}
