import { sleep } from '#src/async/sleep.ts';
import type { Logger } from '#src/telemetry/logger.ts';
import type { EgressEndpoint } from '../egress-endpoint.ts';
import { createAvailability, type Availability } from '../availability.ts';
import type {
  BrowserBuild,
  BrowserExit,
  BrowserFolders,
  Browsers,
  BrowserSpec,
  ObservedBrowser,
  RunningBrowser,
} from '../browsers.ts';
import { isClose } from '../chromium/closed.ts';
import { closeWithin, createPlacedBrowser, OwnBrowsers, runningOf } from '../own-browsers.ts';
import { serveEgress } from '../relay-connections.ts';
import { isAnswering, statusOf } from './cluster.ts';
import { findBrowser } from './find.ts';
import { createPodFolders } from './folders.ts';
import { launchPod, type FollowPod, type Launched } from './launch.ts';
import { removeBrowsersOfGoneServers } from './left-servers.ts';
import { memoryUsedBy } from './memory.ts';
import { assignment, BROWSER, EGRESS_PORT, KEEPER, nameOf, selectorFor } from './naming.ts';
import { endedAtOf, reasonOf, toldOf, type PodBrowser } from './own-pod.ts';
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
    removeBrowsersOfGoneServers(site.cluster, { own, isGone, log }).catch((error: unknown) =>
      log.warn({ err: error }, 'failed to look for browsers of servers that are gone'),
    ),
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
export async function browsersAt(
  site: KubernetesSite,
  { log, launchTimeoutMs }: Pick<KubernetesOptions, 'log' | 'launchTimeoutMs'>,
): Promise<KubernetesBrowsers> {
  const browsers = new KubernetesBrowsers(site, launchTimeoutMs, log);
  await browsers.watch();
  return browsers;
}

class KubernetesBrowsers implements Browsers {
  readonly kind = 'kubernetes';
  readonly egress: 'network' | undefined;
  readonly #site: KubernetesSite;
  readonly #launchTimeoutMs: number;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #selector: string;
  readonly #own = new OwnBrowsers<PodBrowser>((_, workloadId) => this.#removePod(workloadId));
  /** Also of a browser that has ended, as long as its keeper is there. */
  readonly folders: BrowserFolders;
  readonly #availability: Availability;
  readonly #ending = new DisposableStack();
  /** Called with each change of a workload's Pod while it is launched. */
  readonly #followers = new Map<string, (pod: BrowserPod) => void>();
  /** Pods and Secrets of failed launches that the API server was away to remove. */
  readonly #unremoved = new Set<string>();
  #watcher: PodWatcher | null = null;

  constructor(site: KubernetesSite, launchTimeoutMs: number, log: Pick<Logger, 'warn'>) {
    this.#site = site;
    this.#launchTimeoutMs = launchTimeoutMs;
    this.#log = log;
    this.#selector = selectorFor(site.pods.serverId);
    this.#availability = createAvailability(site.guard, log, site.checkEveryMs);
    this.egress = site.canClose ? 'network' : undefined;
    this.folders = createPodFolders(site.cluster, (workloadId) => this.#placeOf(workloadId));
  }

  build(): BrowserBuild {
    return this.#site.build;
  }

  isOutdated(workloadId: string): boolean {
    const own = this.#own.get(workloadId);
    return own !== undefined && own.image !== this.#site.pods.image;
  }

  /** Disposes of it when the browsers end. */
  ends(part: Disposable): void {
    this.#ending.use(part);
  }

  async watch(): Promise<void> {
    this.#watcher = await watchPods(this.#site.cluster, this.#selector, {
      onChange: (pod) => this.#handleChange(pod),
      onGone: (pod) => this.#handleGone(pod),
      onConnected: () => this.#reconnected(),
      onDisconnected: () => void this.#checkCluster(),
    });
  }

  async launch(spec: BrowserSpec): Promise<RunningBrowser> {
    const { workloadId } = spec;
    this.#own.assertCanLaunch(workloadId);
    const stopped = new AbortController();
    const { cluster, pods } = this.#site;
    const timeoutMs = this.#launchTimeoutMs;
    const unremoved = (name: string) => void this.#unremoved.add(name);
    const bounds = { follow: this.#follow, timeoutMs, stopped: stopped.signal, unremoved };
    const launching = launchPod(cluster, pods, spec, bounds);
    const given = { image: pods.image, keepsProfile: spec.profile !== undefined };
    const own: PodBrowser = createPlacedBrowser(stopped, launching, given);
    this.#own.set(workloadId, own);
    try {
      const launched = await launching;
      own.launched = launched;
      serveEgress(launched, spec.egress, stopped.signal);
      if (own.exit !== null) this.#handleExit(workloadId, own, own.exit);
      return launched.browser;
    } catch (error) {
      this.#own.delete(workloadId);
      if (!stopped.signal.aborted) await this.#checkCluster();
      throw error;
    }
  }

  async stop(workloadId: string): Promise<void> {
    const own = this.#own.get(workloadId);
    await (own === undefined ? this.#removePod(workloadId) : this.#own.stop(workloadId, own));
  }

  close(workloadId: string, withinMs: number): Promise<boolean> {
    return closeWithin(this.#own.get(workloadId), withinMs);
  }

  readProfile(workloadId: string, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const own = this.#own.get(workloadId);
    if (own?.launched === undefined || own.launched === null || !own.keepsProfile)
      throw new Error(`${workloadId} has no profile here`);
    const { cluster } = this.#site;
    const { pod } = own.launched;
    return own.exit === null
      ? readRunningProfile(cluster, pod, signal)
      : readProfile(cluster, pod, signal);
  }

  async list(): Promise<ObservedBrowser[]> {
    const found = await listPods(this.#site.cluster, this.#selector);
    const listed = await Promise.all(found.map((one) => this.#observe(one)));
    const ids = new Set(found.map(({ workloadId }) => workloadId));
    const launching = this.#own.entries().filter(([workloadId]) => !ids.has(workloadId));
    const none = { sessionId: null, adoptable: null };
    return [...listed, ...launching.map(([workloadId]) => ({ workloadId, ...none }))];
  }

  async assign(workloadId: string, sessionId: string): Promise<void> {
    const own = this.#own.get(workloadId);
    if (own === undefined || own.launched === null) return;
    own.sessionId = sessionId;
    const { api, namespace, patch } = this.#site.cluster;
    const change = { name: own.launched.pod, namespace, body: assignment(sessionId) };
    try {
      await api.patchNamespacedPod(change, patch());
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }

  async memoryUsed(workloadId: string): Promise<number | null> {
    const launched = this.#own.get(workloadId)?.launched ?? null;
    return launched === null ? null : memoryUsedBy(this.#site.cluster, launched.pod);
  }

  async adopt(workloadId: string, egress?: EgressEndpoint): Promise<RunningBrowser | null> {
    const known = this.#own.get(workloadId);
    if (known !== undefined) return runningOf(known);
    const pods = await listPods(this.#site.cluster, this.#selector);
    const found = pods.find((one) => one.workloadId === workloadId);
    const browser = found === undefined ? null : await this.#find(found);
    if (found === undefined || browser === null) return null;
    const { name: pod, uid, image, keeper, isClosed, sessionId } = found;
    const given = { image, keepsProfile: keeper !== null };
    const placed = createPlacedBrowser(new AbortController(), Promise.resolve(), given);
    const relay = isClosed ? { ...browser.cdp, port: EGRESS_PORT } : null;
    const launched = { pod, uid, browser, egress: relay };
    const own: PodBrowser = { ...placed, launched, sessionId };
    serveEgress(launched, egress, own.stopped.signal);
    this.#own.set(workloadId, own);
    // It may have ended meanwhile, when it was not known here.
    const now = this.#watcher?.get(workloadId) ?? null;
    if (now === null) this.#handleExit(workloadId, own, { ...found, isDeleted: true });
    else this.#handleChange(now);
    return runningOf(own);
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

  async #close(mustStop: (own: PodBrowser) => boolean): Promise<void> {
    try {
      await this.#own.close(mustStop);
    } finally {
      this.#ending.dispose();
      this.#availability[Symbol.dispose]();
      await this.#watcher?.[Symbol.asyncDispose]();
    }
  }

  /** Also what a failed launch or an earlier process has left. */
  #removePod(workloadId: string): Promise<void> {
    return removePod(this.#site.cluster, nameOf(workloadId));
  }

  #placeOf(workloadId: string): { pod: string; container: string } | null {
    const own = this.#own.get(workloadId);
    if (own?.launched === undefined || own.launched === null) return null;
    if (own.exit !== null && !own.keepsProfile) return null;
    return { pod: own.launched.pod, container: own.keepsProfile ? KEEPER : BROWSER };
  }

  readonly #follow: FollowPod = (workloadId, listener, signal) => {
    this.#followers.set(workloadId, listener);
    signal.addEventListener('abort', () => this.#followers.delete(workloadId), { once: true });
  };

  async #observe(pod: BrowserPod): Promise<ObservedBrowser> {
    const { workloadId, sessionId } = pod;
    const own = this.#own.get(workloadId);
    if (own !== undefined)
      return { workloadId, sessionId: own.sessionId ?? sessionId, adoptable: runningOf(own) };
    if (pod.phase !== 'ended' && !pod.isDeleted)
      return { workloadId, sessionId, adoptable: await this.#find(pod) };
    const output = pod.exitCode === 0 ? await lastOutput(this.#site.cluster, pod.name) : '';
    const close = isClose(pod.exitCode, output) ? { closedAt: endedAtOf(pod) } : {};
    return { workloadId, sessionId, adoptable: null, ...close };
  }

  /** A browser that a service left standing still goes on, where its profile was being read. */
  async #find(pod: BrowserPod): Promise<RunningBrowser | null> {
    if (pod.keeper !== null && pod.phase === 'running') await resume(this.#site.cluster, pod.name);
    return findBrowser(pod, this.#site.pods.linkKeys);
  }

  #handleChange(pod: BrowserPod): void {
    const { workloadId, phase } = pod;
    this.#followers.get(workloadId)?.(pod);
    const own = this.#own.get(workloadId);
    if (own === undefined) return;
    // A Pod that is being deleted ends soon; on a node that is gone it never would.
    if (phase === 'ended' || pod.isDeleted) this.#handleExit(workloadId, own, pod);
    else if (own.sessionId !== null && own.sessionId !== pod.sessionId)
      this.#assignAgain(workloadId, own.sessionId);
  }

  /** The API server was away when the browser was assigned: without its label it may be evicted. */
  #assignAgain(workloadId: string, sessionId: string): void {
    this.assign(workloadId, sessionId).catch((error: unknown) =>
      this.#log.warn({ err: error, workloadId }, 'failed to label the Pod of a session'),
    );
  }

  #handleGone(pod: BrowserPod): void {
    const gone = { ...pod, phase: 'ended', isDeleted: true } as const;
    this.#followers.get(pod.workloadId)?.(gone);
    const own = this.#own.get(pod.workloadId);
    if (own !== undefined && own.launched?.uid === pod.uid)
      this.#handleExit(pod.workloadId, own, gone);
  }

  async #reconnected(): Promise<void> {
    const removing = [...this.#unremoved].map(async (name) => {
      await removePod(this.#site.cluster, name);
      this.#unremoved.delete(name);
    });
    // What fails is tried again when it is connected the next time.
    await Promise.allSettled([...removing, this.#availability.engineBack()]);
  }

  /** After a failure: reports a lost API server at once, since the watch may lag. */
  async #checkCluster(): Promise<void> {
    if (await isAnswering(this.#site.cluster)) return;
    this.#availability.engineLost();
    this.#watcher?.reconnect();
  }

  #handleExit(workloadId: string, own: PodBrowser, exit: BrowserPod): void {
    own.exit ??= { ...exit, endedAt: endedAtOf(exit) };
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
    own: PodBrowser,
    { pod }: Launched,
    exit: BrowserPod,
  ): Promise<void> {
    const output = await lastOutput(this.#site.cluster, pod).catch(String);
    const reason = reasonOf(exit, output);
    const hasProfile = reason === 'browser_closed' && own.keepsProfile;
    const unfinished = hasProfile ? '' : await this.#own.removeAfterExit(workloadId, own);
    own.ended.resolve(reason);
    const { memoryBytes } = this.#site.pods.limits;
    const detail = [output, toldOf(exit)].filter(Boolean).join('\n') + unfinished;
    const ended: BrowserExit = {
      workloadId,
      reason,
      exitCode: exit.exitCode,
      endedAt: endedAtOf(exit),
      // The kernel kills for lack of memory once all that a container may use is in use.
      ...(reason === 'out_of_memory' && { memoryPeakBytes: memoryBytes }),
      ...(hasProfile && { hasProfile }),
      detail,
    };
    this.#own.reportExit(ended);
  }
}
