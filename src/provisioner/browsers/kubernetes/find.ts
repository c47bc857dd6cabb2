import type { LinkKeys } from '#src/browser-link/browser-link.ts';
import type { RunningBrowser } from '../browsers.ts';
import type { ServersBrowser } from '../left-servers.ts';
import { browserAt } from '../until-ready.ts';
import type { Cluster } from './cluster.ts';
import { CDP_PORT, selectorFor, VNC_PORT, webdriverAt } from './naming.ts';
import { listPods, type BrowserPod } from './pods.ts';
import { removePod } from './remove.ts';

/** The browsers of all servers in the namespace. */
export async function browsersOfAll(cluster: Cluster): Promise<ServersBrowser[]> {
  const pods = await listPods(cluster, selectorFor(null));
  return pods.map(({ name: pod, serverId }) => ({
    serverId,
    place: { pod },
    remove: () => removePod(cluster, pod),
  }));
}

/** The browser in a Pod of an earlier process; null if none answers. */
export async function findBrowser(
  { workloadId, phase, address: host, isDeleted }: BrowserPod,
  linkKeys: LinkKeys,
): Promise<RunningBrowser | null> {
  if (phase !== 'running' || host === null || isDeleted) return null;
  const linkKey = linkKeys(workloadId);
  const vnc = { host, port: VNC_PORT, linkKey };
  const rest = { workloadId, vnc, webdriver: webdriverAt(host) };
  return browserAt({ host, port: CDP_PORT, linkKey }, rest);
}
