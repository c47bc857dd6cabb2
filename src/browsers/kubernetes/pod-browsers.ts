import { sleep } from '#src/kernel/async/sleep.ts';
import type { Browsers } from '../browsers.ts';
import { removeBrowsersOfGoneServers } from '../left-servers.ts';
import type { PlacedBrowser, PlaceEngine } from '../place-engine.ts';
import { PlacedBrowsers } from '../placed-browsers.ts';
import { isAnswering, statusOf } from './cluster.ts';
import { browsersOfAll, findBrowser, look } from './find.ts';
import { createPodFolders } from './folders.ts';
import { launchPod, type FollowPod, type Launched } from './launch.ts';
import { memoryUsedBy } from './memory.ts';
import { assignment, BROWSER, EGRESS_PORT, KEEPER, nameOf, selectorFor } from './naming.ts';
import { endedAtOf, toldOf } from './own-pod.ts';
import { listPods, watchPods, type BrowserPod, type PodWatcher } from './pods.ts';
import { readProfile, readRunningProfile } from './prepare.ts';
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
  const engineFor = (known: PodBrowsers) => podEngine(site, known);
  return new PlacedBrowsers(engineFor, { log, launchTimeoutMs }).watch();
}

/** What they keep of a browser's end is its Pod's last state. */
type PodBrowsers = PlacedBrowsers<Launched, BrowserPod>;
type PodBrowser = PlacedBrowser<Launched, BrowserPod>;

function podEngine(site: KubernetesSite, known: PodBrowsers): PlaceEngine<Launched, BrowserPod> {
  const { cluster, pods, build, canClose, guard, checkEveryMs } = site;
  const selector = selectorFor(pods.serverId);
  const { watch, follow, unremoved, catchUp } = followPods(site, known);
  return {
    kind: 'kubernetes',
    guard,
    checkEveryMs,
    image: { now: () => ({ ...build, id: pods.image, hasRelay: canClose }) },
    get memoryBytes() {
      return pods.limits.memoryBytes;
    },
    folders: createPodFolders(cluster, (workloadId) => placeOf(known.own.get(workloadId))),
    isAnswering: () => isAnswering(cluster),
    watch,
    launch: (spec, bounds) => launchPod(cluster, pods, spec, { ...bounds, follow, unremoved }),
    // What a failed launch or an earlier process has left has the same name.
    remove: (workloadId) => removePod(cluster, nameOf(workloadId)),
    async list() {
      const found = await listPods(cluster, selector);
      return found.map((pod) => ({ ...pod, look: () => look(site, pod) }));
    },
    async find(workloadId) {
      const listed = await listPods(cluster, selector);
      const found = listed.find((one) => one.workloadId === workloadId);
      const browser = found === undefined ? null : await findBrowser(site, found);
      if (found === undefined || browser === null) return null;
      const { name: pod, uid, image, keeper, isClosed, sessionId } = found;
      const egress = isClosed ? { ...browser.cdp, port: EGRESS_PORT } : null;
      const launched = { pod, uid, browser, egress };
      const place = { launched, sessionId, image, keepsProfile: keeper !== null };
      return { place, catchUp: (own) => catchUp(own, found) };
    },
    async label({ pod: name }, sessionId) {
      const { api, namespace, patch } = cluster;
      try {
        await api.patchNamespacedPod({ name, namespace, body: assignment(sessionId) }, patch());
      } catch (error) {
        if (statusOf(error) !== 404) throw error;
      }
    },
    async explain(_, { pod: name }, pod) {
      const output = await lastOutput(cluster, name).catch(String);
      const { exitCode, isOutOfMemory: isMemoryKill } = pod;
      return { exitCode, endedAt: endedAtOf(pod), isMemoryKill, output, told: toldOf(pod) };
    },
    memoryUsed: ({ pod }) => memoryUsedBy(cluster, pod),
    readProfile: ({ pod }, hasEnded, signal) =>
      (hasEnded ? readProfile : readRunningProfile)(cluster, pod, signal),
  };
}

/** Tells of the ends of Pods, and each launch of the changes of its own. */
function followPods({ cluster, pods }: KubernetesSite, known: PodBrowsers) {
  /** Called with each change of a workload's Pod while it is launched. */
  const followers = new Map<string, (pod: BrowserPod) => void>();
  /** Pods and Secrets of failed launches that the API server was away to remove. */
  const unremoved = new Set<string>();
  let watcher: PodWatcher | null = null;

  function end(own: PodBrowser, pod: BrowserPod): void {
    known.handleExit(pod.workloadId, own, { ...pod, endedAt: endedAtOf(pod) });
  }
  function onChange(pod: BrowserPod): void {
    const { workloadId, phase } = pod;
    followers.get(workloadId)?.(pod);
    const own = known.own.get(workloadId);
    if (own === undefined) return;
    // A Pod that is being deleted ends soon; on a node that is gone it never would.
    if (phase === 'ended' || pod.isDeleted) end(own, pod);
    else if (own.sessionId !== null && own.sessionId !== pod.sessionId)
      // The API server was away when it was assigned: without its label it may be evicted.
      known
        .assign(workloadId, own.sessionId)
        .catch((error: unknown) =>
          known.log.warn({ err: error, workloadId }, 'failed to label the Pod of a session'),
        );
  }
  function onGone(pod: BrowserPod): void {
    const gone = { ...pod, phase: 'ended', isDeleted: true } as const;
    followers.get(pod.workloadId)?.(gone);
    const own = known.own.get(pod.workloadId);
    if (own !== undefined && own.launched?.uid === pod.uid) end(own, gone);
  }
  async function onConnected(): Promise<void> {
    const removing = [...unremoved].map(async (name) => {
      await removePod(cluster, name);
      unremoved.delete(name);
    });
    // What fails is tried again when it is connected the next time.
    await Promise.allSettled([...removing, known.availability.engineBack()]);
  }
  const onDisconnected = () => void known.checkEngine();
  const handlers = { onChange, onGone, onConnected, onDisconnected };
  const watch = async (): Promise<PodWatcher> => {
    return (watcher = await watchPods(cluster, selectorFor(pods.serverId), handlers));
  };
  const follow: FollowPod = (workloadId, listener, signal) => {
    followers.set(workloadId, listener);
    signal.addEventListener('abort', () => followers.delete(workloadId), { once: true });
  };
  return {
    watch,
    follow,
    unremoved: (name: string) => void unremoved.add(name),
    /** It may have ended meanwhile, when it was not known here. */
    catchUp: (own: PodBrowser, found: BrowserPod): void => {
      const now = watcher?.get(found.workloadId) ?? null;
      if (now === null) end(own, { ...found, isDeleted: true });
      else onChange(now);
    },
  };
}

/** Where the files of a browser are, as long as they are there. */
function placeOf(own: PodBrowser | undefined): { pod: string; container: string } | null {
  if (own === undefined || own.launched === null) return null;
  if (own.exit !== null && !own.keepsProfile) return null;
  return { pod: own.launched.pod, container: own.keepsProfile ? KEEPER : BROWSER };
}
