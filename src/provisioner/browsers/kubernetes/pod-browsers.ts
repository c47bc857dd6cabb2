import { sleep } from '#src/async/sleep.ts';
import type { Logger } from '#src/telemetry/logger.ts';
import type { BrowserFolders, Browsers, BrowserSpec, RunningBrowser } from '../browsers.ts';
import { isClose } from '../chromium/closed.ts';
import { removeBrowsersOfGoneServers } from '../left-servers.ts';
import type { FoundPlace, ListedPlace, PlacedBrowser, PlaceEngine } from '../place-engine.ts';
import { PlacedBrowsers } from '../placed-browsers.ts';
import { isAnswering, statusOf } from './cluster.ts';
import { browsersOfAll, findBrowser } from './find.ts';
import { createPodFolders } from './folders.ts';
import { launchPod, type FollowPod, type Launched } from './launch.ts';
import { memoryUsedBy } from './memory.ts';
import { assignment, BROWSER, EGRESS_PORT, KEEPER, nameOf, selectorFor } from './naming.ts';
import { endedAtOf, toldOf } from './own-pod.ts';
import { listPods, watchPods, type BrowserPod, type PodWatcher } from './pods.ts';
import { readProfile, readRunningProfile, resume } from './prepare.ts';
import { lastOutput, removePod } from './remove.ts';
import { openSite, type KubernetesSite, type KubernetesSiteOptions } from './site.ts';

/**
 * Browsers in Pods of a Kubernetes cluster, one browser in each: pod.ts confines a Pod, and the
 * namespace's NetworkPolicies limit what it can reach. Pods outlive this process; the next one
 * finds them by their labels.
 */
export type KubernetesOptions = KubernetesSiteOptions & {
  /** The longest duration of a launch, the start of a node included. */
  launchTimeoutMs: number;
  /** Whether another server has left or was lost, and does not run: its browsers are removed. */
  isServerGone?: (serverId: string) => Promise<boolean>;
};

/** How often the browsers of servers that are gone are looked for. */
const GONE_EVERY_MS = 5 * 60_000;

/**
 * Connects to the API server, and verifies the isolation of the namespace.
 * @throws KubernetesUnavailable with the cause and the variable that would help
 */
export async function createKubernetesBrowsers(options: KubernetesOptions): Promise<Browsers> {
  const site = await openSite(options);
  const browsers = await browsersAt(site, options);
  const { serverId: own, isServerGone: isGone, log } = options;
  if (isGone === undefined) return browsers;
  // Not awaited: on a node that is gone each takes half a minute.
  const removing = repeat(GONE_EVERY_MS, () =>
    removeBrowsersOfGoneServers(() => browsersOfAll(site.cluster), { own, isGone, log }),
  );
  browsers.ends(removing);
  return browsers;
}

/** Does the work now, and again so long after each end of it. */
function repeat(everyMs: number, work: () => Promise<void>): Disposable {
  const stopped = new AbortController();
  const run = async () => {
    while (!stopped.signal.aborted) {
      await work();
      await sleep(everyMs, stopped.signal, { ref: false });
    }
  };
  void run();
  return { [Symbol.dispose]: () => stopped.abort() };
}

/** Creates the browsers in a namespace that is ready. */
export function browsersAt(
  site: KubernetesSite,
  { log, launchTimeoutMs }: Pick<KubernetesOptions, 'log' | 'launchTimeoutMs'>,
): Promise<PodBrowsers> {
  const engineFor = (browsers: PodBrowsers) => new PodEngine(site, browsers, log);
  return new PlacedBrowsers(engineFor, { log, launchTimeoutMs }).watch();
}

/** Of a browser's end they keep its Pod's last state. */
type PodBrowsers = PlacedBrowsers<Launched, BrowserPod>;
type PodBrowser = PlacedBrowser<Launched, BrowserPod>;

class PodEngine implements PlaceEngine<Launched, BrowserPod> {
  readonly kind = 'kubernetes';
  readonly folders: BrowserFolders;
  readonly guard: KubernetesSite['guard'];
  readonly checkEveryMs: number;
  readonly #site: KubernetesSite;
  readonly #browsers: PodBrowsers;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #selector: string;
  /** Called with each change of a workload's Pod while it is launched. */
  readonly #followers = new Map<string, (pod: BrowserPod) => void>();
  /** Pods and Secrets of failed launches that the API server was away to remove. */
  readonly #unremoved = new Set<string>();
  #watcher: PodWatcher | null = null;

  constructor(site: KubernetesSite, browsers: PodBrowsers, log: Pick<Logger, 'warn'>) {
    this.#site = site;
    this.#browsers = browsers;
    this.#log = log;
    this.#selector = selectorFor(site.pods.serverId);
    this.guard = site.guard;
    this.checkEveryMs = site.checkEveryMs;
    this.folders = createPodFolders(site.cluster, (workloadId) => this.#placeOf(workloadId));
  }

  get memoryBytes(): number {
    return this.#site.pods.limits.memoryBytes;
  }

  readonly image = {
    now: () => {
      const { pods, build, canClose } = this.#site;
      return { ...build, id: pods.image, hasRelay: canClose };
    },
  };

  async watch(): Promise<PodWatcher> {
    this.#watcher = await watchPods(this.#site.cluster, this.#selector, {
      onChange: (pod) => this.#handleChange(pod),
      onGone: (pod) => this.#handleGone(pod),
      onConnected: () => this.#reconnected(),
      onDisconnected: () => void this.#browsers.checkEngine(),
    });
    return this.#watcher;
  }

  isAnswering(): Promise<boolean> {
    return isAnswering(this.#site.cluster);
  }

  launch(
    spec: BrowserSpec,
    bounds: { timeoutMs: number; stopped: AbortSignal },
  ): Promise<Launched> {
    const { cluster, pods } = this.#site;
    const unremoved = (name: string) => void this.#unremoved.add(name);
    return launchPod(cluster, pods, spec, { ...bounds, follow: this.#follow, unremoved });
  }

  /** By its name: what a failed launch or an earlier process has left has the same. */
  remove(workloadId: string): Promise<void> {
    return removePod(this.#site.cluster, nameOf(workloadId));
  }

  async list(): Promise<ListedPlace[]> {
    const pods = await listPods(this.#site.cluster, this.#selector);
    return pods.map((pod) => ({ ...pod, look: () => this.#look(pod) }));
  }

  async find(workloadId: string): Promise<FoundPlace<Launched, BrowserPod> | null> {
    const pods = await listPods(this.#site.cluster, this.#selector);
    const found = pods.find((one) => one.workloadId === workloadId);
    const browser = found === undefined ? null : await this.#find(found);
    if (found === undefined || browser === null) return null;
    const { name: pod, uid, image, keeper, isClosed, sessionId } = found;
    const egress = isClosed ? { ...browser.cdp, port: EGRESS_PORT } : null;
    const catchUp = (own: PodBrowser): void => {
      // It may have ended meanwhile, when it was not known here.
      const now = this.#watcher?.get(workloadId) ?? null;
      if (now === null) this.#end(own, { ...found, isDeleted: true });
      else this.#handleChange(now);
    };
    const launched = { pod, uid, browser, egress };
    return { launched, sessionId, image, keepsProfile: keeper !== null, catchUp };
  }

  async label({ pod: name }: Launched, sessionId: string): Promise<void> {
    const { api, namespace, patch } = this.#site.cluster;
    try {
      await api.patchNamespacedPod({ name, namespace, body: assignment(sessionId) }, patch());
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }

  async explain(_: PodBrowser, { pod: name }: Launched, pod: BrowserPod) {
    const output = await lastOutput(this.#site.cluster, name).catch(String);
    const { exitCode, isOutOfMemory: isMemoryKill } = pod;
    return { exitCode, endedAt: endedAtOf(pod), isMemoryKill, output, told: toldOf(pod) };
  }

  memoryUsed({ pod }: Launched): Promise<number | null> {
    return memoryUsedBy(this.#site.cluster, pod);
  }

  readProfile(
    { pod }: Launched,
    hasEnded: boolean,
    signal: AbortSignal,
  ): AsyncIterable<Uint8Array> {
    const read = hasEnded ? readProfile : readRunningProfile;
    return read(this.#site.cluster, pod, signal);
  }

  #placeOf(workloadId: string): { pod: string; container: string } | null {
    const own = this.#browsers.get(workloadId);
    if (own === undefined || own.launched === null) return null;
    if (own.exit !== null && !own.keepsProfile) return null;
    return { pod: own.launched.pod, container: own.keepsProfile ? KEEPER : BROWSER };
  }

  readonly #follow: FollowPod = (workloadId, listener, signal) => {
    this.#followers.set(workloadId, listener);
    signal.addEventListener('abort', () => this.#followers.delete(workloadId), { once: true });
  };

  async #look(pod: BrowserPod) {
    if (pod.phase !== 'ended' && !pod.isDeleted) return { adoptable: await this.#find(pod) };
    const output = pod.exitCode === 0 ? await lastOutput(this.#site.cluster, pod.name) : '';
    const closed = isClose(pod.exitCode, output) ? { closedAt: endedAtOf(pod) } : {};
    return { adoptable: null, ...closed };
  }

  /** A browser that a service left standing still goes on, where its profile was being read. */
  async #find(pod: BrowserPod): Promise<RunningBrowser | null> {
    if (pod.keeper !== null && pod.phase === 'running') await resume(this.#site.cluster, pod.name);
    return findBrowser(pod, this.#site.pods.linkKeys);
  }

  #handleChange(pod: BrowserPod): void {
    const { workloadId, phase } = pod;
    this.#followers.get(workloadId)?.(pod);
    const own = this.#browsers.get(workloadId);
    if (own === undefined) return;
    // A Pod that is being deleted ends soon; on a node that is gone it never would.
    if (phase === 'ended' || pod.isDeleted) this.#end(own, pod);
    else if (own.sessionId !== null && own.sessionId !== pod.sessionId)
      this.#labelAgain(workloadId, own.sessionId);
  }

  /** The API server was away when the browser was assigned: without its label it may be evicted. */
  #labelAgain(workloadId: string, sessionId: string): void {
    this.#browsers
      .assign(workloadId, sessionId)
      .catch((error: unknown) =>
        this.#log.warn({ err: error, workloadId }, 'failed to label the Pod of a session'),
      );
  }

  #handleGone(pod: BrowserPod): void {
    const gone = { ...pod, phase: 'ended', isDeleted: true } as const;
    this.#followers.get(pod.workloadId)?.(gone);
    const own = this.#browsers.get(pod.workloadId);
    if (own !== undefined && own.launched?.uid === pod.uid) this.#end(own, gone);
  }

  #end(own: PodBrowser, pod: BrowserPod): void {
    this.#browsers.handleExit(own, { ...pod, endedAt: endedAtOf(pod) });
  }

  async #reconnected(): Promise<void> {
    const removing = [...this.#unremoved].map(async (name) => {
      await removePod(this.#site.cluster, name);
      this.#unremoved.delete(name);
    });
    // What fails is tried again when it is connected the next time.
    await Promise.allSettled([...removing, this.#browsers.engineBack()]);
  }
}
