import type { ObservedBrowser, RunningBrowser } from '../browsers.ts';
import { isClose } from '../chromium/closed.ts';
import type { ServersBrowser } from '../left-servers.ts';
import { browserAt } from '../until-ready.ts';
import type { Cluster } from './cluster.ts';
import { CDP_PORT, selectorFor, VNC_PORT, webdriverAt } from './naming.ts';
import { endedAtOf } from './own-pod.ts';
import { listPods, type BrowserPod } from './pods.ts';
import { resume } from './prepare.ts';
import { lastOutput, removePod } from './remove.ts';
import type { KubernetesSite } from './site.ts';

/** The browsers of all servers in the namespace. */
export async function browsersOfAll(cluster: Cluster): Promise<ServersBrowser[]> {
  const pods = await listPods(cluster, selectorFor(null));
  return pods.map(({ name: pod, serverId }) => ({
    serverId,
    place: { pod },
    remove: () => removePod(cluster, pod),
  }));
}

/** Looks at a Pod of an earlier process. */
export async function look(
  site: KubernetesSite,
  pod: BrowserPod,
): Promise<Pick<ObservedBrowser, 'adoptable' | 'closedAt'>> {
  if (pod.phase !== 'ended' && !pod.isDeleted) return { adoptable: await findBrowser(site, pod) };
  const output = pod.exitCode === 0 ? await lastOutput(site.cluster, pod.name) : '';
  const isClosed = isClose(pod.exitCode, output);
  return { adoptable: null, ...(isClosed && { closedAt: endedAtOf(pod) }) };
}

/** The browser in a Pod of an earlier process; null if none answers. */
export async function findBrowser(
  { cluster, pods }: KubernetesSite,
  { workloadId, name, phase, address: host, isDeleted, keeper }: BrowserPod,
): Promise<RunningBrowser | null> {
  // Where its profile was being read, it stands still.
  if (keeper !== null && phase === 'running') await resume(cluster, name);
  if (phase !== 'running' || host === null || isDeleted) return null;
  const linkKey = pods.linkKeys(workloadId);
  const vnc = { host, port: VNC_PORT, linkKey };
  const rest = { workloadId, vnc, webdriver: webdriverAt(host) };
  return browserAt({ host, port: CDP_PORT, linkKey }, rest);
}
